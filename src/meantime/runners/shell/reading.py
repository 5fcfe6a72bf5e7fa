"""The output of a command, for its readers: whole characters, chunks, tails."""

from __future__ import annotations

from pathlib import Path

from meantime.kernel.errors import InvalidInput
from meantime.kernel.given import shown
from meantime.kernel.model import Chunk

from .characters import last_lines, trim
from .spool import STREAMS, Spool


def read(base: Path, stream: str, offset: int, most: int, *, ended: bool) -> Chunk:
    if stream not in STREAMS:
        raise InvalidInput(f"stream={shown(stream)} is unknown.", hint=f"Use one of: {', '.join(STREAMS)}.")
    piece = Spool(base).read(stream, offset, most)
    data, back = piece.data, 0
    if not (ended and piece.next >= piece.total):
        data, _, back = trim(piece.data, begin=False)
        if not data and (ended or piece.next < piece.total):
            data, back = piece.data, 0  # else the rest of the character is still to come
    return Chunk(data, piece.offset, piece.next - back, piece.total, piece.lost)


def tail(base: Path, stream: str, lines: int, most: int, *, ended: bool) -> Chunk:
    total = read(base, stream, 0, 0, ended=ended).total
    chunk = read(base, stream, max(0, total - most), most, ended=ended)
    while chunk.next < total and (later := read(base, stream, chunk.next, most, ended=ended)).data:
        chunk = later  # what lies before a gap is not the end
    data, front, _ = trim(chunk.data, begin=chunk.offset > 0, end=False)
    kept = last_lines(data, lines)
    offset = chunk.offset + front + len(data) - len(kept)
    return Chunk(kept, offset, offset + len(kept), total)
