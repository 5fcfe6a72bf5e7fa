"""The meaning of a command's ending: the report of its run, from the state that its shim left."""

from __future__ import annotations

import errno
import os
import shlex
import signal
from pathlib import Path
from typing import Any

from meantime.kernel.model import Failed, Json
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import Jsonable

from . import provenance
from .final_output import gather, shown
from .output_ring import State
from .shim import cells

GONE = "Its supervisor was killed, so how it ended is not known."
REBOOTED = "The machine was restarted while it ran."
UNTOLD = "It was not begun when its process ended, and what it needs to run was not stored."
UNREADABLE = "The files of this command cannot be read, so it could not be followed any more:"
DAMAGED = "The state of this command is damaged, so how it ended is not known."
VANISHED = "The files of this command are gone, so how it ended is not known."
COPIED = (
    "This ledger is a copy. The command belongs to the original{place}; it was neither followed nor stopped "
    "here, so how it ended is not known."
)
ORPHANED = "It was stopped because the process that waited for it was gone."


def report(base: Path, state: State, given: dict[str, Any], inline: int | None) -> Report:
    """`inline`: bytes of its output that are taken into memory; None is all of them."""
    if not state.is_sound:
        return lost(base, state, DAMAGED, inline)
    said = gather(base, state, inline)
    if state[cells.PROBLEM]:
        return Report(error=_unstarted(state, given))
    by = state[cells.STOPPED_BY]
    if by == cells.BY_ORPHANHOOD:
        return Report(lost=ORPHANED, partial=said.text, spill=said.spill)
    if state[cells.STOPPED]:
        timed_out = by == cells.BY_DEADLINE
        return Report(stopped=True, timed_out=timed_out, partial=said.text, spill=said.spill)
    if state[cells.SIGNAL] or state[cells.EXIT_CODE]:
        return Report(error=_failed(state), partial=said.text, spill=said.spill)
    return Report(result=Jsonable(said.text or "", said.faithful), spill=said.spill)


def copied(base: Path, state: State | None, inline: int | None) -> Report:
    """A run that belongs to the original of this state. The copy's part of its output is shown; no file is
    touched, as it may be a hard link to the original's.
    """
    place = provenance.made_in(base)
    why = COPIED.format(place=f" in {place}" if place else "")
    return Report(lost=why, partial=shown(base, state, inline) or None if state else None)


def lost(base: Path, state: State, why: str, inline: int | None) -> Report:
    said = gather(base, state, inline)
    return Report(lost=why, partial=said.text or None, spill=said.spill)


def _failed(state: State) -> Failed:
    number = state[cells.SIGNAL]
    if number:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return Failed(f"It was killed by {name}.", "signal", signal=number)
    code = state[cells.EXIT_CODE]
    return Failed(f"It ended with exit code {code}.", "exit", exit_code=code)


def _unstarted(state: State, given: dict[str, Any]) -> Failed:
    number = state[cells.PROBLEM]
    if state[cells.PROBLEM_WITH] == cells.FOLDER:
        return no_folder(str(given.get("cwd")), number)
    return no_program(program_of(given["command"]), number)


def program_of(command: Json) -> str:
    return "/bin/sh" if isinstance(command, str) else str(command[0])


def no_program(program: str, number: int) -> Failed:
    name = shlex.quote(program)
    if number == errno.ENOENT:
        return Failed(f"The program {name} was not found; check its name and the PATH.", "program_not_found")
    return Failed(f"The program {name} could not be started: {os.strerror(number)}.", "program_not_started")


def no_folder(folder: str, number: int) -> Failed:
    if number == errno.ENOENT:
        return Failed(f"The folder {folder} does not exist, so nothing was started in it.", "no_such_folder")
    return Failed(f"The folder {folder} cannot be used: {os.strerror(number)}.", "folder_not_usable")
