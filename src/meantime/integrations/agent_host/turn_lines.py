"""The lines of one turn, put together from what an agent's program reports: pieces, calls and results."""

from __future__ import annotations

from typing import Any, Protocol

from meantime.kernel.lines import Kind, Line


class LineSink(Protocol):
    """The part of a Hearer that takes lines and spending."""

    def line(self, line: Line) -> None: ...

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None: ...

    def phase(self, text: str) -> None: ...


class TurnLines:
    def __init__(self, sink: LineSink) -> None:
        self.sink = sink
        self.text = ""  # the last thing that was said whole
        self.kind = Kind.TEXT  # of the pieces
        self._pieces: list[str] = []
        self._calls: dict[str, str] = {}  # the tools of calls without a result

    # -- what is said

    def say(self, text: str) -> None:
        self.flush()
        self._tell(text, Kind.TEXT)

    def think(self, text: str) -> None:
        self.flush()
        self._tell(text, Kind.THOUGHT)

    def piece(self, text: str, kind: Kind = Kind.TEXT) -> None:
        """Adds a piece of a message; the pieces become one line when something else comes."""
        if kind is not self.kind:
            self.flush()
        self.kind = kind
        self._pieces.append(text)

    def flush(self) -> None:
        """The message is complete. One of white space alone is not worth a line."""
        said = self.take_pieces()
        if said.strip():
            self._tell(said, self.kind)

    @property
    def has_pieces(self) -> bool:
        return bool(self._pieces)

    @property
    def unended(self) -> str:
        """Pieces that have no line yet."""
        return "".join(self._pieces)

    def take_pieces(self) -> str:
        """They get no line."""
        pieces, self._pieces = self._pieces, []
        return "".join(pieces)

    def _tell(self, text: str, kind: Kind) -> None:
        if not text:
            return
        if kind is Kind.TEXT:
            self.text = text
        self.sink.line(Line(role="assistant", kind=kind, text=text))

    # -- what is called

    def call(self, id: str, tool: str, arguments: Any) -> None:
        """Told once, however often the program reports it before its result."""
        if id not in self._calls:
            self._calls[id] = tool
            self.sink.line(Line(role="assistant", kind=Kind.CALL, tool=tool, call=id, arguments=arguments))

    def result(self, id: str, text: str, *, failed: bool = False) -> None:
        """From now on the id may be that of another call: some models use one again."""
        tool = self._calls.pop(id, "")
        self.sink.line(Line(role="tool", kind=Kind.RESULT, tool=tool, call=id, text=text, failed=failed))
