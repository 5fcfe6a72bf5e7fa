"""The command line of one program, and the meaning of its output. Each has a file of its own."""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct

from meantime.kernel.lines import Kind, Line
from meantime.kernel.payloads import as_text
from meantime.ports.session import AgentSettings

Event = dict[str, Any]


class TurnRequest(Struct, frozen=True):
    """One turn, as its program is to be asked for it. The prompt goes to its stdin."""

    settings: AgentSettings
    session: str  # its id there: ours on a first turn, where the program takes it
    source: str = ""  # the session to copy
    resumes: bool = False
    last: bool = False  # it is to hand in what it has, without tools

    @property
    def free(self) -> bool:
        """Whether everything is allowed that no rule forbids."""
        return self.settings.otherwise == "allow" or "*" in self.settings.allow


class LineSink(Protocol):
    """The reports of a reader: part of the Hearer, with the place of every line known."""

    def line(self, line: Line) -> None: ...

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None: ...

    def phase(self, text: str) -> None: ...


class Reader(ABC):
    """Understands what a program says in one turn. It receives every event from the first on, even events
    that a former owner has received; it ignores unknown events.
    """

    def __init__(self, sink: LineSink, used: int = 0) -> None:
        """`used`: tokens of the session before this turn."""
        self.sink = sink
        self.used = used
        self.total = used  # and with it
        self.spoke = False  # it has said anything at all
        self.session = ""  # as the program names it
        self.text = ""  # the last thing that was said
        self.done = False  # the program said that the turn is over
        self.error = ""  # and why it failed
        self.status = 0  # the provider's, where it is told
        self._pieces: list[str] = []
        self._calls: dict[str, str] = {}  # which tool was called by which call

    @abstractmethod
    def read(self, event: Event) -> None: ...

    # -- words for readers

    def say(self, text: str) -> None:
        self.flush()
        if text:
            self.text = text
            self.sink.line(Line(role="assistant", text=text))

    def piece(self, text: str) -> None:
        """Adds a piece of a message; the pieces become one line when something else comes."""
        self._pieces.append(text)

    def flush(self) -> None:
        pieces, self._pieces = self._pieces, []
        if pieces:
            self.say("".join(pieces))

    def think(self, text: str) -> None:
        self.flush()
        if text:
            self.sink.line(Line(role="assistant", kind=Kind.THOUGHT, text=text))

    def call(self, id: str, tool: str, arguments: Any) -> None:
        self.flush()
        if id not in self._calls:
            self._calls[id] = tool
            self.sink.line(Line(role="assistant", kind=Kind.CALL, tool=tool, call=id, arguments=arguments))

    def result(self, id: str, answer: Any, *, failed: bool = False) -> None:
        self.flush()
        line = Line(role="tool", kind=Kind.RESULT, tool=self._calls.get(id, ""), call=id,
                    text=words(answer), failed=failed)  # fmt: skip
        self.sink.line(line)

    def fail(self, why: str, status: int = 0) -> None:
        self.done = True
        with contextlib.suppress(msgspec.DecodeError):  # the provider's answer as it came
            inner = msgspec.json.decode(why)
            why = words(part(inner, "error")) or words(part(inner, "message")) or why
        self.error = why or "It failed, and did not say why."
        self.status = status


class CliAdapter(Struct, frozen=True):
    name: str  # of the program
    arguments: Callable[[TurnRequest], list[str]]
    reader: type[Reader]
    takes_ids: bool = False  # a session has the id that we give it
    forks: bool = True
    picks_tools: bool = False  # it can be told which tools there are,
    allows: bool = False  # which it may use without asking,
    denies: bool = False  # and which it may not use
    gone: str = r"\b\B"  # what it says of a session that it does not have
    environment: Callable[[TurnRequest], dict[str, str]] = lambda ask: {}

    def is_gone(self, why: str) -> bool:
        return re.search(self.gone, why, re.IGNORECASE) is not None


def words(value: Any) -> str:
    """The text in what a tool answered, however it is wrapped."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(words, value)))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, dict):
        for name in ("text", "content", "value", "output", "message"):
            if name in value:
                return words(value[name])
    return as_text(value) if value not in (None, {}) else ""


def number(value: Any) -> int:
    """A count, from somebody who may have said anything."""
    return max(0, int(value)) if isinstance(value, int | float) and value == value else 0


def part(event: Any, *names: str) -> Any:
    """The value below these names; an empty object where there is nothing of the kind."""
    found: Any = event
    for name in names:
        found = cast("Event", found).get(name) if isinstance(found, dict) else None
    return {} if found is None else found


def table(event: Any, *names: str) -> Event:
    """The object there, or an empty one."""
    found = part(event, *names)
    return cast("Event", found) if isinstance(found, dict) else {}


def several(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
