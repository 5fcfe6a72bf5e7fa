"""Stands over one stdio server or agent, so that nothing of it outlives us: `guard.py <lifeline> <command>`.

The lifeline is a pipe of which its owner holds the other end. When that is closed, by a close or by a
kill -9 of the owner, the server has a moment to go by itself (its stdin is closed by then, too); then
everything below this process gets TERM, and at last KILL. As a sub-reaper it keeps what double-forks.

Standard library only, and run by its path: it must start fast.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import select
import signal
import sys
import time

GRACE = 2.0  # seconds to go after stdin was closed, and again after TERM
PR_SET_CHILD_SUBREAPER = 36
NOT_STARTED = 127


def main(lifeline: int, command: list[str]) -> int:
    os.set_inheritable(lifeline, False)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it leaves by the lifeline only
    try:
        server = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            setpgroup=0,
            setsigdef=[signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE],
        )
    except OSError as problem:
        os.write(2, f"{command[0]}: {problem.strerror}\n".encode(errors="replace"))
        return NOT_STARTED
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
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def watch(server: int, lifeline: int) -> int | None:
    """Until the server has ended, by itself or because nobody holds the lifeline."""
    pidfd = os.pidfd_open(server)
    waiting = select.poll()
    waiting.register(pidfd, select.POLLIN)
    waiting.register(lifeline, select.POLLIN | select.POLLHUP)
    while (status := reap(server)) is None:
        if any(fd == lifeline for fd, _ in waiting.poll(5_000)):
            break
    if status is not None:
        return status
    waiting.unregister(lifeline)
    for sending in (0, signal.SIGTERM):
        if sending:
            sweep(sending)
        waiting.poll(int(GRACE * 1_000))
        if (status := reap(server)) is not None:
            return status
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
    while found := below(os.getpid()):
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, sending)
        if sending != signal.SIGKILL or time.monotonic() > end:
            return
        time.sleep(0.005)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def below(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = [int(child) for child in file.read().split()]
        for thread in os.listdir(f"/proc/{pid}/task"):
            if thread != str(pid):
                with open(f"/proc/{pid}/task/{thread}/children") as file:
                    children += [int(child) for child in file.read().split()]
    except OSError:
        return []
    return children + [deeper for child in children for deeper in below(child)]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
