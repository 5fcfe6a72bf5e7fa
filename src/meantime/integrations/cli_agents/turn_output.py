"""From the output of a program to the input of its reader: whole lines, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from meantime.kernel.lines import Line
from meantime.ports.commands import Piece
from meantime.ports.session import Hearer
from meantime.system.line_splitter import LineSplitter, LongLine

from .cli_adapter import CliAdapter, Reader

LONGEST = 32 << 20  # bytes; a line that is longer is no event that anybody needs
NOISE = 2_000  # characters that are kept of what is no event: it may say why it failed
_decode = msgspec.json.Decoder().decode


class PlacedLines:
    """Lines, each with its place in the stream. A line of which something was not kept is left out."""

    def __init__(self) -> None:
        self._lines = LineSplitter(LONGEST, LongLine)
        self._next = 0  # where the next piece is to begin
        self._begin = 0  # of the line that is being put together
        self._broken = False  # its beginning is missing
        self._whole = True

    @property
    def whole(self) -> bool:
        """Nothing was missing so far."""
        return self._whole and not self._lines.is_too_long

    def cut(self, piece: Piece) -> Iterator[tuple[int, bytes]]:
        if piece.offset != self._next:
            self._lines.clear()
            self._broken, self._whole = True, False
            self._begin = piece.offset
        self._next = piece.offset + len(piece.data)
        yield from self._placed(self._lines.feed(piece.data))

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """The remainder when there will be no more: a last line that was not ended."""
        yield from self._placed(self._lines.end())

    def _placed(self, lines: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
        for line in lines:
            begin, broken = self._begin, self._broken
            is_long = isinstance(line, LongLine)
            self._begin += (line.size if is_long else len(line)) + 1
            self._broken, self._whole = False, self._whole and not is_long
            if line.strip() and not broken:
                yield begin, line


class TurnOutput:
    """One turn of one program."""

    def __init__(
        self, adapter: CliAdapter, hearer: Hearer, number: int, used: int, *, again: bool = False
    ) -> None:
        """`again`: a former owner has read some of it, and counted what was spent."""
        self._hearer = hearer
        self._again = again
        self._spent: list[tuple[int, int, float]] = []
        self._number = number
        self._lines = PlacedLines()
        self._place = self._count = 0
        self._heard_at = -1  # the place of the last line that was heard before
        self._noise = ""
        self.reader: Reader = adapter.reader(self, used)

    def piece(self, piece: Piece) -> None:
        for place, line in self._lines.cut(piece):
            self._event(place, line)
        self._hearer.alive()

    def end(self) -> None:
        for place, line in self._lines.rest():
            self._event(place, line)
        self.reader.flush()
        self._count_spent()

    @property
    def noise(self) -> str:
        return self._noise

    @property
    def whole(self) -> bool:
        return self._lines.whole

    def _event(self, place: int, line: bytes) -> None:
        self._place, self._count = place, 0
        try:
            event: Any = _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            event = None
        if isinstance(event, dict):
            self.reader.spoke = True
            self.reader.read(cast("dict[str, Any]", event))
            if not self._again:
                self._count_spent()
        else:
            text = line[-NOISE:].decode("utf-8", "replace")
            self._noise = f"{self._noise}{text}\n"[-NOISE:]

    # -- what the reader says

    def line(self, line: Line) -> None:
        """Its id is where it stands: the same line has it again when somebody else takes the turn up."""
        self._count += 1
        line = replace(line, id=f"{self._number}@{self._place}.{self._count}")
        if self._again and self._hearer.has(line.id):
            self._spent.clear()  # it was spent before that line, so it was counted
            self._heard_at = self._place
        else:
            self._again = False
        self._hearer.line(line)

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        if (turns or tokens or cost) and not (self._again and self._place == self._heard_at):
            self._spent.append((turns, tokens, cost))

    def _count_spent(self) -> None:
        spent, self._spent = self._spent, []
        for turns, tokens, cost in spent:
            self._hearer.spent(turns=turns, tokens=tokens, cost=cost)

    def phase(self, text: str) -> None:
        self._hearer.phase(text)
