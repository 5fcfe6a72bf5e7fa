"""What a command's ending means: the report of its run, from the state that its shim left."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import signal
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from meantime.kernel.model import Failed, Json, Spill
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import Jsonable

from .shim import cells
from .spool import BOTH, Spool, State

INLINE = 1_000_000  # bytes of output that are taken into memory; more stays in its file
PREVIEW = 4_000  # bytes of each end that are shown of it
GONE = "Its supervisor was killed, so how it ended is not known."
REBOOTED = "The machine was restarted while it ran."
UNTOLD = "It was not begun when its process ended, and what it needs to run was not stored."
UNREADABLE = "The files of this command cannot be read, so it could not be followed any more:"
VANISHED = "The files of this command are gone, so how it ended is not known."
ORPHANED = "It was stopped because the process that waited for it was gone."


class Said(NamedTuple):
    """What the command said, as far as it was kept: as text, or as a file that holds it."""

    text: str | None = None
    spill: Spill | None = None


def report(base: Path, state: State, given: dict[str, Any], whole: bool = False) -> Report:
    """`whole`: somebody waits for it inline, so all that was kept is taken into memory."""
    said = Said(_text(base)) if whole else gather(base, state)
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
    result = Jsonable(said.text or "", True)
    return Report(result=result, spill=said.spill)


def lost(base: Path, state: State | None, why: str) -> Report:
    said = gather(base, state) if state else Said()
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


def gather(base: Path, state: State) -> Said:
    total = state[cells.OUT_TOTAL] + state[cells.ERR_TOTAL]
    if not total:
        return Said("")
    if total <= INLINE:
        return Said(_text(base))
    with contextlib.suppress(OSError):
        return Said(spill=_file(base, state))
    return Said(_ends(base, total))


def _text(base: Path) -> str:
    parts: list[bytes] = []
    for piece in Spool(base).kept():
        parts += [_gap(piece.lost), piece.data]
    return b"".join(parts).decode("utf-8", "replace")


def _gap(lost: int) -> bytes:
    return f"\n… {lost} bytes were not kept …\n".encode() if lost else b""


def _file(base: Path, state: State) -> Spill:
    """The stream's own file where it holds everything in its order; else one that does. A stream that
    went around its ring is put in order for good, so that it does not take the disk twice."""
    alone = not state[cells.ERR_TOTAL] and not state[cells.OUT_GAP_TO] and not state[cells.LEFT]
    kept = state[cells.HEAD] + state[cells.RING]
    if state[cells.LINEAR] or (alone and state[cells.OUT_TOTAL] <= kept):
        return _described(base, cells.WHOLE_FILE if state[cells.LINEAR] else cells.OUT_FILE, None)
    with open(f"{base}{cells.WHOLE_FILE}", "wb", opener=_private) as copy:
        spill = _described(base, cells.WHOLE_FILE, copy)
    if alone:
        _replace(base, state[cells.HEAD] + len(_gap(state[cells.OUT_TOTAL] - kept)))
    return spill


def _described(base: Path, kind: str, copy: BinaryIO | None) -> Spill:
    """Goes through what was kept, in pieces, and copies it where that is wanted."""
    size = lines = 0
    head = tail = b""
    for piece in Spool(base).kept(BOTH):
        data = _gap(piece.lost) + piece.data
        if copy is not None:
            copy.write(data)
        size += len(data)
        lines += data.count(b"\n")
        head += data[: PREVIEW - len(head)] if len(head) < PREVIEW else b""
        tail = (tail + data)[-PREVIEW:]
    lines += 0 if tail.endswith(b"\n") else 1
    return Spill(f"{base}{kind}", size, lines, as_text(head), as_text(tail), of_runner=True)


def _replace(base: Path, ring_at: int) -> None:
    """From now on the copy is what is read. Said first, removed then: whoever is killed between the two
    leaves a file too many, and nothing wrong."""
    fd = os.open(f"{base}{cells.STATE_FILE}", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, ring_at.to_bytes(8, "little"), 8 * cells.LINEAR)
    finally:
        os.close(fd)
    os.unlink(f"{base}{cells.OUT_FILE}")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _ends(base: Path, total: int) -> str:
    """There is no room for a file: what can be shown is kept with the ending."""
    spool = Spool(base)
    head, tail = spool.read(BOTH, 0, PREVIEW), spool.read(BOTH, total - PREVIEW, PREVIEW)
    return f"{as_text(head.data)}\n…\n{as_text(tail.data)}"


def as_text(data: bytes) -> str:
    """As text, without the halves of code points that were cut at either end."""
    return trim(data)[0].decode("utf-8", "replace")


def trim(data: bytes, *, begin: bool = True, end: bool = True) -> tuple[bytes, int, int]:
    """Without a cut code point at its ends; also says how many bytes that took off each."""
    front = back = 0
    if begin:
        while front < min(3, len(data)) and data[front] & 0xC0 == 0x80:
            front += 1
    if end:
        back = _unfinished(data)
    return data[front : len(data) - back], front, back


def _unfinished(data: bytes) -> int:
    """How many bytes at the end begin a code point that is not all there."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        need = 2 if byte & 0xE0 == 0xC0 else 3 if byte & 0xF0 == 0xE0 else 4 if byte & 0xF8 == 0xF0 else 1
        return back if need > back else 0
    return 0


def last_lines(data: bytes, lines: int) -> bytes:
    place = len(data) - data.endswith(b"\n")
    for _ in range(lines):
        place = data.rfind(b"\n", 0, place)
        if place < 0:
            return data
    return data[place + 1 :]
