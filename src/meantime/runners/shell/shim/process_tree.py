"""The processes below us: finding all of them, and stopping all of them.

A shim is the reaper of everything its command starts, also of what was double-forked or moved to a
session of its own: whatever it does, it stays below us.
"""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module itself would be one more to share with every fork
    from collections.abc import Callable

Found = dict[int, tuple[int, int]]  # pid -> start time, process group
FREEZES = 20  # passes in which we try to hold still what forks faster than we look


def stat(pid: int) -> list[bytes] | None:
    """The fields of /proc/<pid>/stat from the third on: state, parent, group, … ; None if it is gone."""
    text = _read(f"/proc/{pid}/stat")
    return text[text.rindex(b")") + 2 :].split() if text else None


def start_time(pid: int) -> int:
    """In clock ticks since boot; with the pid it names a process for good."""
    fields = stat(pid)
    return int(fields[19]) if fields else 0


def is_gone(fields: list[bytes]) -> bool:
    """A zombie is gone but for its name; unless only its first thread has ended, and others go on."""
    return fields[0] in (b"Z", b"X") and int(fields[17]) < 2


def alone() -> bool:
    """Whether nothing is below us: exact, as everything that loses its parent becomes our child. A look
    at /proc can miss one that forks and goes while we look."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def descendants(of: int) -> Found:
    """Everything below a process that still lives."""
    found: Found = {}
    todo = [of]
    while todo:
        for child in children(todo.pop()):
            fields = stat(child)
            if fields is None or child in found:
                continue
            todo.append(child)
            if not is_gone(fields):
                found[child] = (int(fields[19]), int(fields[2]))
    return found


def left_below(of: int) -> Found:
    """Everything below a process that is not alone. A process that forks and ends while we look is looked for
    again.
    """
    found: Found = {}
    for _ in range(FREEZES):
        found = descendants(of)
        if found or alone():
            break
    return found


def children(pid: int) -> list[int]:
    """Children that have ended and were not reaped yet are among them."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for thread in threads:
        found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return found


def _read(path: str) -> bytes:
    """All of a small file of the kernel's, or nothing if it is gone."""
    parts: list[bytes] = []
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        while part := os.read(fd, 1 << 16):
            parts.append(part)
    except OSError:
        return b""
    finally:
        os.close(fd)
    return b"".join(parts)


def send(pid: int, started: int, number: int) -> None:
    """A signal to this very process, not to one that has taken its pid since."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if start_time(pid) == started:
            signal.pidfd_send_signal(handle, number)
    except OSError:
        return
    finally:
        os.close(handle)


def terminate(of: int) -> None:
    for pid, (started, _) in descendants(of).items():
        send(pid, started, signal.SIGTERM)
        send(pid, started, signal.SIGCONT)  # one that is stopped would never hear it


def kill(of: int) -> Found:
    """Holds everything still, so that nothing can fork away from us, then kills it. Returns what was
    there: the caller looks again until nothing is."""
    return kill_all(lambda: descendants(of))


def kill_all(find: Callable[[], Found]) -> Found:
    held: Found = {}
    for _ in range(FREEZES):
        fresh = {pid: at for pid, at in find().items() if held.get(pid) != at}
        if not fresh:
            break
        _strike(fresh, signal.SIGSTOP)
        held |= fresh
    _strike(held, signal.SIGKILL)
    return held


def _strike(found: Found, number: int) -> None:
    """Whole groups at once: a signal to a group also meets those that are being forked. All groups
    below us were made below us, in sessions that began there."""
    ours = os.getpgrp()
    for group in {group for _, group in found.values()}:
        if group not in (ours, 0):
            try:
                os.killpg(group, number)
            except OSError:
                continue
    for pid, (started, _) in found.items():
        send(pid, started, number)
