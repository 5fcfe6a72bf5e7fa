"""When a shim was killed, its command has nobody left: it is found by the mark in its environment.

Every signal that goes to what a state file names, other than through its shim, is sent from here; and only
where the state is that of this very command, not a copy of it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from . import provenance
from .output_ring import State
from .provenance import Whose
from .shim import cells, process_tree
from .shim_watch import is_locked

ROUNDS = 50
PAUSE = 0.02
LOOKS = 5  # at processes that show no environment
MOMENT = 0.002  # seconds between them
PF_KTHREAD = 0x00200000  # in the flags of /proc/<pid>/stat


class KillResult(NamedTuple):
    killed: int = 0
    left: tuple[int, ...] = ()  # processes that could not be killed
    spared: bool = False  # the state is a copy: what it names belongs to the original, and was let be


class KillTarget(NamedTuple):
    """The processes that are looked for, beside the mark. A process is named by its pid and its start."""

    base: Path
    shim: tuple[int, int] = (0, 0)
    others: tuple[tuple[int, int], ...] = ()  # the command, and what was left when it ended


def kill_orphans(base: Path, state: State | None, *, followed: bool = False) -> KillResult:
    """Kills the command, everything that carries its mark and all that is below these; with a shim that
    lives, also all that is below it. `state` is None where the file is gone. `followed`: we saw its shim hold
    the state, which may be gone by now. Blocks."""
    quarry = _named(base, state) if followed and state is not None else _quarry(base, state)
    if quarry is None:
        return KillResult(spared=True)
    met: process_tree.Found = {}
    found: process_tree.Found = {}
    for _ in range(ROUNDS):
        found = process_tree.kill_all(partial(_found, quarry, met))
        if not found and not _has_children(*quarry.shim):
            break
        met |= found
        time.sleep(PAUSE)  # the kernel takes them down in its own time
    return KillResult(len(met), tuple(sorted(found)))


def _quarry(base: Path, state: State | None) -> KillTarget | None:
    """None where it is not ours. The pids of an older state, which does not say whose it is, and those of
    another start of the machine are not believed: there the mark alone counts, and a shim that holds this
    very file."""
    whose = provenance.whose(base)
    if whose is Whose.ANOTHERS:
        return None
    if state is None:
        return KillTarget(base)
    locked = is_locked(base)
    if not locked and provenance.lives_without(state):
        return None
    if whose is Whose.OURS and (locked or state[cells.BOOT] == provenance.this_boot()):
        return _named(base, state)
    return KillTarget(base)


def _named(base: Path, state: State) -> KillTarget:
    command = (state[cells.COMMAND_PID], state[cells.COMMAND_START])
    shim = (state[cells.SHIM_PID], state[cells.SHIM_START])
    return KillTarget(base, shim, (command, *state.left_processes))


def _found(quarry: KillTarget, met: process_tree.Found) -> process_tree.Found:
    """The mark alone would not do: a process can change its environment, the command itself too, and
    has none for a moment while it becomes another program."""
    roots = marked(quarry.base, quarry.shim[1])
    if quarry.shim[0] and process_tree.start_time(quarry.shim[0]) == quarry.shim[1]:
        roots |= process_tree.descendants(quarry.shim[0])
    for known, at in (*quarry.others, *((each, at) for each, (at, _) in met.items())):
        fields = process_tree.stat(known)
        if fields is not None and int(fields[19]) == at and not process_tree.is_gone(fields):
            roots[known] = (at, int(fields[2]))
    below = [process_tree.descendants(root) for root in roots]
    return {each: at for found in (roots, *below) for each, at in found.items() if each != os.getpid()}


def _has_children(shim: int, started: int) -> bool:
    """Whether somebody is below a shim that lives: one that forks and goes while we look is not found, and
    its child comes to the shim."""
    return bool(shim) and process_tree.start_time(shim) == started and bool(process_tree.children(shim))


def mark_of(base: Path) -> str:
    """The mark that its processes carry. With the numbers of its state, as another ledger, perhaps in a
    container, may have the same path and the same task; they still name it when the folder is moved.
    """
    found = os.stat(f"{base}{cells.STATE_FILE}")
    return f"{base}@{found.st_dev}:{found.st_ino}"


def marked(base: Path, since: int = 0) -> process_tree.Found:
    """Living processes that were started with the mark of this command; `since`: the start of its shim.

    One that is just becoming another program shows no environment for a moment, so those are looked at again:
    all of them together, as shims never show one, and a machine may have hundreds."""
    is_mark = _marks(base)
    found: process_tree.Found = {}
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()]
    for look in range(LOOKS):
        if look:
            time.sleep(MOMENT)
        blank: list[int] = []
        for pid in pids:
            text = _environment(pid)
            if not text:
                if text is not None and _may_be_marked(pid, since):
                    blank.append(pid)
            elif any(map(is_mark, text.split(b"\0"))):
                fields = process_tree.stat(pid)
                if fields is not None and not process_tree.is_gone(fields):
                    found[pid] = (int(fields[19]), int(fields[2]))
        if not blank:
            break
        pids = blank
    return found


def _marks(base: Path) -> Callable[[bytes], bool]:
    """Whether a variable is the mark. Older versions marked with the path alone; and where the state is
    gone, nothing but the path is known."""
    begin, plain = os.fsencode(f"{cells.MARK}="), os.fsencode(f"{cells.MARK}={base}")
    try:
        end = os.fsencode(mark_of(base).removeprefix(str(base.parent)))  # wherever its folder was then
    except OSError:
        return lambda entry: entry == plain or entry.startswith(plain + b"@")
    return lambda entry: entry == plain or (entry.startswith(begin) and entry.endswith(end))


def _environment(pid: int) -> bytes | None:
    """The environment of a process; or of its other threads, where its first one has ended. None for one that
    is gone, or somebody else's."""
    text = _read(f"/proc/{pid}/environ")
    return _of_other_threads(pid) if text == b"" else text


def _of_other_threads(pid: int) -> bytes:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return b""
    others = (thread for thread in threads if thread != str(pid))
    return b"".join(_read(f"/proc/{pid}/task/{thread}/environ") or b"" for thread in others)


def _may_be_marked(pid: int, since: int) -> bool:
    """Whether a process that shows no environment may show the mark in a moment: not a thread of the
    kernel's, and not one that is older than the shim of the command."""
    fields = process_tree.stat(pid)
    if fields is None or process_tree.is_gone(fields):
        return False
    return int(fields[19]) >= since and not int(fields[6]) & PF_KTHREAD


def _read(path: str) -> bytes | None:
    """None for one that is gone, or somebody else's."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def put_down(base: Path, state: State, *, followed: bool = False) -> None:
    """A shim that does not answer any more. It must hold this very file, or be known to have begun it."""
    whose = provenance.whose(base)
    if followed or whose is Whose.OURS or (whose is Whose.UNSAID and is_locked(base)):
        process_tree.send(state[cells.SHIM_PID], state[cells.SHIM_START], signal.SIGKILL)
