"""Output that comes in pieces, as blocks of whole lines that can be searched."""

from __future__ import annotations

import re

MOST_LINE = 1 << 16  # bytes; a longer line is searched in pieces
_BACK = 1 << 12  # bytes from the end of a piece in which a space is looked for, to cut there
_ANSI = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")


class LineBlocks:
    """Cuts pieces of output at the ends of lines. A line without its end is kept for the next piece.

    at: the absolute offset of the first piece.
    """

    __slots__ = ("_rest", "at")

    def __init__(self, at: int) -> None:
        self.at = at  # behind the last piece
        self._rest = b""

    @property
    def searched(self) -> int:
        """The absolute offset of the first byte that was in no block yet."""
        return self.at - len(self._rest)

    def feed(self, data: bytes, *, last: bool = False) -> bytes:
        """All lines that are whole now, without terminal codes. `last`: there will be no more, so the rest
        is a line, too."""
        self.at += len(data)
        data = self._rest + data if self._rest else data
        end = len(data) if last else max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        while len(data) - end > MOST_LINE:  # what is kept stays small, however much comes at once
            end = _cut(data, end)
        self._rest = data[end:]
        return _searchable(data[:end])

    def skip(self, to: int) -> bytes:
        """The output goes on at another offset: what is between is gone. Returns the line before the gap."""
        cut_off, self._rest, self.at = self._rest, b"", to
        return _searchable(cut_off)


def _cut(data: bytes, begin: int) -> int:
    """Where a line without an end is cut: at a space, so that a word stays whole; or between characters."""
    most = begin + MOST_LINE
    space = data.rfind(b" ", most - _BACK, most)
    if space >= 0:
        return space + 1
    end = most
    while end > most - 4 and data[end] & 0xC0 == 0x80:
        end -= 1
    return end


def _searchable(raw: bytes) -> bytes:
    """A carriage return ends a line as well: a progress bar writes nothing else."""
    if b"\r" in raw:
        raw = raw.replace(b"\r", b"\n")
    if b"\x1b" in raw:
        raw = _ANSI.sub(b"", raw)
    if raw.isascii():
        return raw
    try:
        raw.decode()
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace").encode()
    return raw
