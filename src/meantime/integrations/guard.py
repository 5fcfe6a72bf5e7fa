"""Stands over one stdio server or agent, so that nothing of it outlives us: `main(<lifeline>, <command>)`.

The lifeline is a pipe of which its owner holds the other end. When that is closed, by a close or by a
kill -9 of the owner, the server has a moment to go by itself (its stdin is closed by then, too); then
everything below this process gets TERM, and at last KILL. Processes that double-fork are kept, or found, as
the platform can do it.

Runs in a bare Python: it must start fast.
"""

from __future__ import annotations

import os
import select
import time

from meantime.system.platform import tree

TYPE_CHECKING = False  # `signal`, `contextlib` and `typing` load more than all of this
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal

GRACE = 2.0  # seconds to go after stdin was closed, and again after TERM
MARK = "MEANTIME_GUARD"  # in the environment of the server, where the platform finds it by that
NOT_STARTED = 127


def main(lifeline: int, command: list[str]) -> int:
    os.set_inheritable(lifeline, False)
    tree.orphan_adopter()()
    mark = os.urandom(8).hex()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it leaves by the lifeline only
    try:
        server = os.posix_spawnp(
            command[0],
            command,
            tree.with_mark(os.environ, MARK, mark),
            setpgroup=0,
            setsigdef=[signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE],
        )
    except OSError as problem:
        os.write(2, f"{command[0]}: {problem.strerror}\n".encode(errors="replace"))
        return NOT_STARTED
    tree.follow(server, f"{MARK}={mark}")
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)  # the pipes are the server's alone: their end is its end
    status = watch(server, lifeline)
    sweep(signal.SIGKILL)
    return leave_like(status)


def leave_like(status: int | None) -> int:
    """Our owner sees the server's own ending, even if that was a signal."""
    code = os.waitstatus_to_exitcode(status) if status is not None else -signal.SIGKILL
    if code < 0:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def watch(server: int, lifeline: int) -> int | None:
    """Until the server has ended, by itself or because nobody holds the lifeline."""
    ended = tree.exit_descriptor(server)
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    waiting.register(lifeline, select.POLLIN | select.POLLHUP)
    while (status := reap(server)) is None:
        if any(fd == lifeline for fd, _ in waiting.poll(5_000)):
            break
        tree.clear_exit(ended)
    if status is not None:
        return status
    waiting.unregister(lifeline)
    for sending in (0, signal.SIGTERM):
        if sending:
            sweep(sending)
        until = time.monotonic() + GRACE
        while (left := until - time.monotonic()) > 0:
            waiting.poll(int(left * 1_000) + 1)
            if (status := reap(server)) is not None:
                return status
            tree.clear_exit(ended)
    return None


def reap(server: int) -> int | None:
    """The server's wait status, once it has one; strays that came to us are put to rest."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid == server:
            return status
        if pid == 0:
            return None


def sweep(sending: int) -> None:
    """To everything below us; for KILL, until nothing is left or a second is over."""
    end = time.monotonic() + 1.0
    while True:
        found = tree.descendants(os.getpid())
        for pid in found:
            try:  # noqa: SIM105
                os.kill(pid, sending)
            except OSError:
                pass
        if sending != signal.SIGKILL or time.monotonic() > end or (not found and tree.alone()):
            return
        time.sleep(0.005)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
