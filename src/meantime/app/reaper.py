"""Process 1 of a container: it inherits every orphan there, and somebody must take note of their end.

Reaping in the daemon itself would take away the exit codes of its own children. So the daemon is a child, and
process 1 does nothing but reap, and pass signals on. Standard library only.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress

PASSED_ON = {
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
}  # fmt: skip


def step_aside() -> None:
    """Returns in a child; we stay as its parent, and end with its exit code. Everything else in the container
    ends with us."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {*PASSED_ON, signal.SIGCHLD})  # none is lost, nor kills us
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        return
    os._exit(_tend(child))


def _tend(child: int) -> int:
    while (code := _reap(child)) is None:
        number = signal.sigwait({*PASSED_ON, signal.SIGCHLD})
        if number != signal.SIGCHLD:
            with suppress(ProcessLookupError):
                os.kill(child, number)
    return code


def _reap(child: int) -> int | None:
    """Every process that has ended; the exit code, if the child is one of them."""
    code = None
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == child:
                ended = os.waitstatus_to_exitcode(found[1])
                code = ended if ended >= 0 else 128 - ended
    return code
