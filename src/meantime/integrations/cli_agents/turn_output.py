"""From the output of a program to the input of its reader: whole lines, each with its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from meantime.kernel.lines import Line
from meantime.ports.commands import Piece
from meantime.ports.session import Hearer

from .cli_adapter import CliAdapter, Reader

LONGEST = 32 << 20  # bytes; a line that is longer is no event that anybody needs
NOISE = 2_000  # characters that are kept of what is no event: it may say why it failed
_decode = msgspec.json.Decoder().decode


class LineSplitter:
    """Cuts a stream into lines. A line of which something was not kept is left out."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._next = 0  # where the next piece is to begin
        self._begin = 0  # of the line that is being put together
        self._broken = False
        self.whole = True  # nothing was missing so far

    def cut(self, piece: Piece) -> Iterator[tuple[int, bytes]]:
        if piece.offset != self._next:
            self._parts, self._size, self._broken, self.whole = [], 0, True, False
            self._begin = piece.offset
        self._next = piece.offset + len(piece.data)
        place = 0
        while (end := piece.data.find(b"\n", place)) >= 0:
            yield from self._line(piece.data[place:end])
            place = end + 1
            self._begin = piece.offset + place
        self._keep(piece.data[place:])

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """The remainder when there will be no more: a last line that was not ended."""
        yield from self._line(b"")

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > LONGEST:
            self._parts, self._broken, self.whole = [], True, False
        elif data and not self._broken:
            self._parts.append(data)

    def _line(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        self._keep(data)
        line, broken = b"".join(self._parts), self._broken
        self._parts, self._size, self._broken = [], 0, False
        if line.strip() and not broken:
            yield self._begin, line


class TurnOutput:
    """One turn of one program."""

    def __init__(
        self, dialect: CliAdapter, hearer: Hearer, number: int, used: int, *, again: bool = False
    ) -> None:
        """`again`: a former owner has read some of it, and counted what was spent."""
        self._hearer = hearer
        self._again = again
        self._spent: list[tuple[int, int, float]] = []
        self._number = number
        self._lines = LineSplitter()
        self._place = self._count = 0
        self._heard_at = -1  # the place of the last line that was heard before
        self._noise = ""
        self.reader: Reader = dialect.reader(self, used)

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
