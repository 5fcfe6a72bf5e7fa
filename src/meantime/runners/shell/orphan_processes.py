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
        seen = process_tree.facts(known)
        if seen is not None and seen[2] == at:
            roots[known] = (at, seen[1])
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
    """Living processes that were started with the mark of this command; `since`: the start of its shim."""
    return process_tree.marked(_marks(base), since)


def _marks(base: Path) -> Callable[[bytes], bool]:
    """Whether a variable is the mark. Older versions marked with the path alone; and where the state is
    gone, nothing but the path is known."""
    begin, plain = os.fsencode(f"{cells.MARK}="), os.fsencode(f"{cells.MARK}={base}")
    try:
        end = os.fsencode(mark_of(base).removeprefix(str(base.parent)))  # wherever its folder was then
    except OSError:
        return lambda entry: entry == plain or entry.startswith(plain + b"@")
    return lambda entry: entry == plain or (entry.startswith(begin) and entry.endswith(end))


def put_down(base: Path, state: State, *, followed: bool = False) -> None:
    """A shim that does not answer any more. It must hold this very file, or be known to have begun it."""
    whose = provenance.whose(base)
    if followed or whose is Whose.OURS or (whose is Whose.UNSAID and is_locked(base)):
        process_tree.send(state[cells.SHIM_PID], state[cells.SHIM_START], signal.SIGKILL)
