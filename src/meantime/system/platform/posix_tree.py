"""The operations of `tree.py` with what macOS, the BSDs and Linux share, and with psutil.

No supervisor is given the orphans of its command here. So they are looked for: by their parents, by the
sessions that the command and its processes began, and by the mark in their environment. A process that has
left all three is not found.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

from .posix import environment, is_zombie, started

Found = dict[int, tuple[int, int]]
LOOK_AGAIN = 1.0  # seconds between two looks at what a command has left running
MOMENT_LEFT = 0.25  # seconds
LOOKS = 5  # at processes that show no environment
MOMENT = 0.002  # seconds between them
splices = False


class _Followed(NamedTuple):
    since: int  # the start of the command
    variable: bytes
    sessions: set[int]  # ours, which we lead, and those in which its processes were seen


_looked = [float("-inf")]  # when somebody was last seen to be left
_followed: list[_Followed] = []  # at most one: a supervisor has one command


def orphan_adopter() -> Callable[[], object]:
    """No such call is common to all systems."""
    return lambda: None


def follow(command: int, variable: str) -> None:
    _followed[:] = [_Followed(start_time(command), os.fsencode(variable), {command, os.getsid(0)})]


def with_mark(environ: Mapping[str, str], name: str, value: str) -> Mapping[str, str]:
    return {**environ, name: value}


def import_paths() -> list[str]:
    return [str(Path(psutil.__file__).parents[1])]


def facts(pid: int) -> tuple[int, int, int] | None:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if is_zombie(process):
                return None
            return process.ppid(), os.getpgid(pid), started(process)
    except (psutil.Error, OSError, ValueError):
        return None


def start_time(pid: int) -> int:
    try:
        return started(psutil.Process(pid))
    except (psutil.Error, OSError, ValueError):
        return 0


def children(pid: int) -> list[int]:
    return [child for child, (parent, _, _) in _table().items() if parent == pid]


def descendants(of: int) -> Found:
    table = _table()
    roots = _orphans(table) if of == os.getpid() else set[int]()
    below: dict[int, list[int]] = {}
    for pid, (parent, _, _) in table.items():
        below.setdefault(parent, []).append(pid)
    found: Found = {}
    todo = [*below.get(of, ()), *roots]
    while todo:
        pid = todo.pop()
        if pid in found or pid == of:
            continue
        _, group, at = table[pid]
        found[pid] = (at, group)
        todo += below.get(pid, ())
    _note_sessions(found)
    # The oldest first: a parent is signalled before its children, whose end it would otherwise act upon.
    return dict(sorted(found.items(), key=lambda each: (each[1][0], each[0])))


def _table() -> dict[int, tuple[int, int, int]]:
    """Every process that lives."""
    return {pid: found for pid in psutil.pids() if (found := facts(pid)) is not None}


def _orphans(table: dict[int, tuple[int, int, int]]) -> set[int]:
    """Processes of our command that need not be below us any more."""
    found: set[int] = set()
    for since, variable, sessions in _followed:
        young = [pid for pid, (_, _, at) in table.items() if at >= since and pid != os.getpid()]
        found |= {pid for pid in young if _session(pid) in sessions}
        found |= {pid for pid in young if pid not in found and _has(pid, variable)}
    return found


def _note_sessions(found: Found) -> None:
    """A session without a process of ours is forgotten: its number may be another's at the next look."""
    for followed in _followed:
        followed.sessions.clear()
        followed.sessions.update({_session(pid) for pid in found} - {0}, {os.getsid(0)})


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _has(pid: int, variable: bytes) -> bool:
    text = environment(pid)
    return text is not None and variable in text.split(b"\0")


def alone() -> bool:
    return not descendants(os.getpid())


def childless_is_alone() -> bool:
    """A supervisor asks with each piece of output, and a look at all processes takes milliseconds: an answer
    that somebody is left holds for a moment."""
    now = time.monotonic()
    if now < _looked[0] + MOMENT_LEFT:
        return False
    found = alone()
    _looked[0] = float("-inf") if found else now
    return found


def marked(is_mark: Callable[[bytes], bool], since: int) -> Found:
    """One that is just becoming another program shows no environment for a moment, so those are looked at
    again."""
    found: Found = {}
    pids = [pid for pid in psutil.pids() if pid != os.getpid()]
    for look in range(LOOKS):
        if look:
            time.sleep(MOMENT)
        blank: list[int] = []
        for pid in pids:
            seen = facts(pid)
            if seen is None or seen[2] < since:
                continue
            text = environment(pid)
            if text == b"":
                blank.append(pid)
            elif text is not None and any(map(is_mark, text.split(b"\0"))):
                found[pid] = (seen[2], seen[1])
        if not blank:
            break
        pids = blank
    return found


def send(pid: int, started: int, number: int) -> None:
    """Between the look and the signal lies a moment in which the pid could, in theory, be given to
    another."""
    if start_time(pid) == started:
        try:
            os.kill(pid, number)
        except OSError:
            return


def exit_descriptor(child: int) -> int:
    """A pipe that is written to whenever a child ends."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    os.write(wake, b"?")  # it may have ended before we listened
    return woken


def clear_exit(descriptor: int) -> None:
    try:
        os.read(descriptor, 512)
    except BlockingIOError:
        return


def hold_folder(folder: str) -> tuple[str, str | int]:
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # until we end
    os.chdir(held)
    return ".", held


def splice(source: int, file: int, most: int, place: int) -> int:
    raise OSError("not here")


def enter_group(group: str) -> None:
    raise OSError("the number of processes cannot be limited on this system")


def leave_group(group: str, home: str, processes: int) -> None:
    raise OSError("the number of processes cannot be limited on this system")
