"""The output of a command, gathered at its end: as text, or as a file that holds it."""

from __future__ import annotations

import contextlib
import os
import zlib
from pathlib import Path
from typing import BinaryIO, NamedTuple

from meantime.kernel.model import Spill
from meantime.system.platform import sync_data

from .output_ring import BOTH, Spool, State
from .shim import cells
from .utf8 import as_text

DAMAGED = "\n… the file of this output is damaged: its checksum does not match …\n"
PREVIEW = 4_000  # bytes of each end that are shown of it


class FinalOutput(NamedTuple):
    """The output of the command, as far as it was kept: as text, or as a file that holds it."""

    text: str | None = None
    spill: Spill | None = None
    faithful: bool = True  # False: not every byte of it is there, or is text


def gather(base: Path, state: State, inline: int | None) -> FinalOutput:
    """`inline`: bytes that are taken into memory; more stays in its file. None takes all of it."""
    total = state[cells.OUT_TOTAL] + state[cells.ERR_TOTAL]
    if not total:
        return FinalOutput("")
    if not state[cells.LINEAR] and not state.has_its_output(base):
        text = _text(base).text if total <= cells.SUMMED else _ends(base, total)
        return FinalOutput(f"{text}{DAMAGED}", faithful=False)
    if inline is None or total <= inline:
        return _text(base)
    with contextlib.suppress(OSError):
        return FinalOutput(spill=_file(base, state))
    return FinalOutput(_ends(base, total), faithful=False)


def shown(base: Path, state: State, inline: int | None) -> str:
    """All of it, or its two ends; only read."""
    total = state[cells.OUT_TOTAL] + state[cells.ERR_TOTAL]
    return (_text(base).text or "") if inline is None or total <= inline else _ends(base, total)


def _text(base: Path) -> FinalOutput:
    parts: list[bytes] = []
    faithful = True
    for piece in Spool(base).kept():
        parts += [_gap(piece.lost), piece.data]
        faithful = faithful and not piece.lost
    data = b"".join(parts)
    try:
        return FinalOutput(data.decode(), faithful=faithful)
    except UnicodeDecodeError:
        return FinalOutput(data.decode("utf-8", "replace"), faithful=False)


def _gap(lost: int) -> bytes:
    return f"\n… {lost} bytes were not kept …\n".encode() if lost else b""


def _file(base: Path, state: State) -> Spill:
    """The stream's own file if it holds everything in its order; otherwise one that does. A stream that
    went around its ring is put in order for good, so that it does not take the disk twice."""
    alone = not state[cells.ERR_TOTAL] and not state[cells.OUT_GAP_TO] and not state[cells.LEFT]
    kept = state[cells.HEAD] + state[cells.RING]
    if state[cells.LINEAR] or (alone and state[cells.OUT_TOTAL] <= kept):
        return _described(base, cells.WHOLE_FILE if state[cells.LINEAR] else cells.OUT_FILE, None)
    with open(f"{base}{cells.WHOLE_FILE}", "wb", opener=_private) as copy:
        spill = _described(base, cells.WHOLE_FILE, copy)
        copy.flush()
        sync_data(copy.fileno())  # before an ending that points to it is recorded
    if alone:
        _replace(base, state[cells.HEAD] + len(_gap(state[cells.OUT_TOTAL] - kept)))
    return spill


def _described(base: Path, kind: str, copy: BinaryIO | None) -> Spill:
    """Goes through what was kept, in pieces, and copies it where that is wanted."""
    size = lines = lost = crc = 0
    head = tail = b""
    for piece in Spool(base).kept(BOTH):
        data = _gap(piece.lost) + piece.data
        if copy is not None:
            copy.write(data)
        crc = zlib.crc32(data, crc)
        size += len(data)
        lost += piece.lost
        lines += data.count(b"\n")
        head += data[: PREVIEW - len(head)] if len(head) < PREVIEW else b""
        tail = (tail + data)[-PREVIEW:]
    lines += 0 if tail.endswith(b"\n") else 1
    head, tail = as_text(head), as_text(tail)
    return Spill(f"{base}{kind}", size, lines, head, tail, of_runner=True, lost=lost, crc=crc)


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
