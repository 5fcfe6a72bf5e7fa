"""Reads what a command said: by stream and absolute offset, while it goes on and after it has ended."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from meantime.kernel.argument_checks import shown
from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Chunk

from .shim import cells
from .shim.cells import CHUNK
from .utf8 import last_lines, trim

OUT, ERR, BOTH = "stdout", "stderr", "both"
STREAMS = (BOTH, OUT, ERR)


class OutputPiece(NamedTuple):
    data: bytes
    offset: int  # of the first byte
    next: int  # where to read on
    total: int  # bytes that came so far
    lost: int = 0  # bytes between what was asked for and `offset` that were not kept


class State:
    """One look at a command's state file."""

    def __init__(self, data: bytes) -> None:
        self._cells = memoryview(data).cast("Q")

    def __getitem__(self, cell: int) -> int:
        return self._cells[cell]

    @classmethod
    def of(cls, data: bytes) -> State | None:
        """None where the shim has not got as far as to say anything."""
        state = cls(data) if len(data) == cells.SIZE else None
        return state if state is not None and state[cells.FORMAT] == cells.VERSION else None

    @property
    def is_sound(self) -> bool:
        """Whether the ending is as its shim wrote it."""
        stored = self[cells.SUM]
        return not stored or stored == cells.checksum(cells.ending_of(self._cells))

    def has_its_output(self, base: Path) -> bool:
        """Whether the files of its output are as its shim left them; True where it did not say."""
        streams = ((cells.OUT_SUM, cells.OUT_FILE), (cells.ERR_SUM, cells.ERR_FILE))
        return all(_sum_of(f"{base}{kind}") == self[place] for place, kind in streams if self[place])

    @property
    def left(self) -> list[int]:
        count = min(self[cells.LEFT], cells.MAX_LEFT)
        return [self[cells.LEFT_PIDS + place] for place in range(count)]

    @property
    def left_processes(self) -> list[tuple[int, int]]:
        """Each by its pid and its start; an older shim wrote the pid alone, and that names nobody."""
        starts = (self[cells.LEFT_STARTS + place] for place in range(cells.MAX_LEFT))
        return [(pid, start) for pid, start in zip(self.left, starts, strict=False) if start]

    def total(self, stream: str) -> int:
        out, err, _ = self.totals
        return out if stream == OUT else err if stream == ERR else out + err

    @property
    def totals(self) -> tuple[int, int, int]:
        return self[cells.OUT_TOTAL], self[cells.ERR_TOTAL], self[cells.SWITCHES]


def _sum_of(path: str) -> int:
    try:
        with open(path, "rb") as file:
            return cells.checksum(file.read(cells.SUMMED + 1))
    except OSError:
        return 0


def look(base: Path) -> State | None:
    """None if the command never began, or its files are gone."""
    try:
        fd = os.open(f"{base}{cells.STATE_FILE}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return State.of(os.read(fd, cells.SIZE + 1))  # a file that is longer is none
    except OSError:
        return None
    finally:
        os.close(fd)


class Spool:
    def __init__(self, base: Path) -> None:
        self._base = base

    def read(self, stream: str, offset: int, most: int) -> OutputPiece:
        """At most so many bytes from an offset, or from the first that was kept after it."""
        state = self._steady()
        if state is None:
            return OutputPiece(b"", offset, offset, 0)
        if stream == BOTH:
            return self._read_both(state, offset, most)
        return self._read_one(state, stream, offset, most)

    def kept(self, stream: str = BOTH) -> Iterator[OutputPiece]:
        """All that was kept, from the beginning, in pieces. Not what comes meanwhile: something that was
        left behind may go on for ever."""
        state = self._steady()
        offset, end = 0, state.total(stream) if state else 0
        while offset < end:
            piece = self.read(stream, offset, min(CHUNK, end - offset))
            if not piece.data and not piece.lost:
                return
            yield piece
            offset = piece.next

    def _steady(self) -> State | None:
        """The three counters must be of one moment; while output floods in we look again. One look is
        enough while nothing was said on stderr: a counter that is 0 was 0 when the first was read."""
        state = look(self._base)
        if state is None or not any(state.totals[1:]):
            return state
        for _ in range(100):
            before, state = state, look(self._base)
            if state is None or before.totals == state.totals:
                break
        return state

    def _read_one(self, state: State, stream: str, offset: int, most: int) -> OutputPiece:
        total = state[cells.OUT_TOTAL if stream == OUT else cells.ERR_TOTAL]
        offset = min(offset, total)
        for _ in range(100):
            begin = _first_kept(state, stream, offset)
            end = _last_kept(state, stream, begin)
            data = self._pread(state, stream, begin, min(most, end - begin))
            now = look(self._base) or state
            if now[cells.LINEAR] != state[cells.LINEAR]:
                state = now  # it was put in order while we read: what we have may be of a file that is gone
                continue
            if _first_kept(now, stream, begin) == begin:  # it was not overwritten while we read
                if not data and most:
                    begin = end  # its file is gone, or shorter than it was: nobody waits for the rest
                return OutputPiece(data, begin, begin + len(data), total, begin - offset)
            state = now
        return OutputPiece(b"", total, total, total, total - offset)

    def _pread(self, state: State, stream: str, offset: int, count: int) -> bytes:
        parts: list[bytes] = []
        try:
            fd = os.open(f"{self._base}{_file(state, stream)}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            while count > 0:
                place, room = _place(state, stream, offset)
                part = os.pread(fd, min(count, room), place)
                if not part:
                    break
                parts.append(part)
                offset += len(part)
                count -= len(part)
        finally:
            os.close(fd)
        return b"".join(parts)

    # -- both streams, in the order in which they were heard

    def _read_both(self, state: State, offset: int, most: int) -> OutputPiece:
        out, err, _ = state.totals
        total = out + err
        offset = position = min(offset, total)
        if (data := self._read_turns(state, offset, most)) is not None:
            return OutputPiece(data, offset, offset + len(data), total)
        lost = 0
        parts: list[bytes] = []
        for stream, begin, end, at in self._turns(state, offset):
            while most > 0 and (skip := begin + position - at) < end:
                piece = self._read_one(state, stream, skip, min(most, end - skip))
                gap = min(piece.lost, end - skip)
                if gap and parts:
                    return OutputPiece(b"".join(parts), offset + lost, position, total, lost)
                data = piece.data[: end - piece.offset] if gap < end - skip else b""
                if not gap and not data:
                    return OutputPiece(b"".join(parts), offset + lost, position, total, lost)
                lost += gap
                position += gap + len(data)
                most -= len(data)
                parts += [data] if data else []
        return OutputPiece(b"".join(parts), offset + lost, position, total, lost)

    def _read_turns(self, state: State, offset: int, most: int) -> bytes | None:
        """The common case, with one read a stream: None where something of it was not kept."""
        wanted: list[tuple[str, int, int]] = []
        left = most
        for stream, begin, end, at in self._turns(state, offset):
            if left <= 0:
                break
            begin = max(begin, begin + offset - at)
            end = min(end, begin + left)
            if begin < end:
                wanted.append((stream, begin, end))
                left -= end - begin
        read: dict[str, tuple[int, bytes]] = {}
        for name in {stream for stream, _, _ in wanted}:
            first = min(begin for stream, begin, _ in wanted if stream == name)
            last = max(end for stream, _, end in wanted if stream == name)
            piece = self._read_one(state, name, first, last - first)
            if piece.lost or len(piece.data) < last - first:
                return None
            read[name] = (first, piece.data)
        return b"".join(
            read[stream][1][begin - read[stream][0] : end - read[stream][0]] for stream, begin, end in wanted
        )

    def _turns(self, state: State, offset: int) -> Iterator[tuple[str, int, int, int]]:
        """Stream, its range, and where that begins in the whole; from the turn that holds `offset`."""
        out, err, count = state.totals
        marks = self._marks(count)
        sums = [first + second for first, second in marks]
        place = max(0, bisect_right(sums, offset) - 1) if marks else 0
        before = marks[place] if place else (0, 0)
        for mark in [*marks[place + 1 if place else 0 :], (out, err)]:
            at = sum(before)
            # Two at once only where the order of very many turns was not kept.
            for stream, begin, end in ((OUT, before[0], mark[0]), (ERR, before[1], mark[1])):
                if end > begin:
                    yield stream, begin, end, at
                    at += end - begin
            before = mark

    def _marks(self, count: int) -> list[tuple[int, int]]:
        if not count:
            return []
        try:
            data = Path(f"{self._base}{cells.ORDER_FILE}").read_bytes()
        except OSError:
            return []
        size = cells.SWITCH_BYTES
        kept = min(count, cells.MAX_SWITCHES, len(data) // size)
        numbers = memoryview(data[: len(data) // size * size]).cast("Q")
        places = ((count - kept + turn) % cells.MAX_SWITCHES * 2 for turn in range(kept))
        return [(numbers[place], numbers[place + 1]) for place in places if place + 1 < len(numbers)]


def _first_kept(state: State, stream: str, offset: int) -> int:
    """The offset itself, or the first after it that is still there."""
    total, gap = _cells_of(stream)
    head, ring = state[cells.HEAD], state[cells.RING]
    for _ in range(2):  # a gap may lead into what the ring dropped, and that into the gap
        if state[gap] <= offset < state[gap + 1]:
            offset = min(state[gap + 1], state[total])
        if head <= offset < state[total] - ring:
            offset = max(head, state[total] - ring)
    return offset


def _last_kept(state: State, stream: str, offset: int) -> int:
    """Up to where bytes follow each other without a gap."""
    total, gap = _cells_of(stream)
    head, ring = state[cells.HEAD], state[cells.RING]
    end = state[total]
    if offset < head < end - ring:
        end = head
    if offset < state[gap] < end:
        end = state[gap]
    return end


def _file(state: State, stream: str) -> str:
    if stream == ERR:
        return cells.ERR_FILE
    return cells.WHOLE_FILE if state[cells.LINEAR] else cells.OUT_FILE


def _place(state: State, stream: str, offset: int) -> tuple[int, int]:
    """The place of a byte of a stream in its file, and how many follow each other from there."""
    head, ring = state[cells.HEAD], state[cells.RING]
    if offset < head:
        return offset, head - offset
    if stream == OUT and state[cells.LINEAR]:
        return state[cells.LINEAR] + offset - (state[cells.OUT_TOTAL] - ring), ring
    place = (offset - head) % (ring + CHUNK)
    return head + place, ring + CHUNK - place


def _cells_of(stream: str) -> tuple[int, int]:
    return (cells.OUT_TOTAL, cells.OUT_GAP_FROM) if stream == OUT else (cells.ERR_TOTAL, cells.ERR_GAP_FROM)


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
    return Chunk(kept, offset, offset + len(kept), total, at=_last_said(base) if total else None)


def _last_said(base: Path) -> float | None:
    """By the files themselves: writing changes their time, and nothing else does."""
    found: list[float] = []
    for kind in (cells.OUT_FILE, cells.ERR_FILE, cells.WHOLE_FILE):
        try:
            found.append(os.stat(f"{base}{kind}").st_mtime)
        except OSError:
            continue
    return max(found, default=None)
