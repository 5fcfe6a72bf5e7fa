"""The object that a loop of one's own is given: the conversation so far, and the ways to say more."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from meantime.integrations.agent_host.append_log import AppendLog
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lines import Kind, Line
from meantime.kernel.model import Json
from meantime.kernel.questions import Choice, Question, Reply, permission
from meantime.ports.session import AgentSettings, Brief, Hearer

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class TryAgain(Exception):
    """Raised by a loop whose provider is in trouble: the turn is retried, and nobody is told of it.

    after: seconds, where the provider named them. limited: it said that it is too much at once.
    """

    def __init__(self, message: str = "", *, after: float | None = None, limited: bool = False) -> None:
        super().__init__(message)
        self.after = after
        self.limited = limited


class Conversation:
    """One turn of one session. Everything that is added is kept at once, also over a kill."""

    def __init__(
        self, kept: AppendLog, lines: Sequence[Line], brief: Brief, hearer: Hearer, *, last: bool
    ) -> None:
        self._kept = kept
        self._lines = list(lines)
        self._hearer = hearer
        self._steered: list[str] = []
        self._asked = 0
        self.brief = brief
        self.last = last  # hand in what there is, and call no more tools

    @property
    def messages(self) -> Sequence[Line]:
        """All that was said, oldest first; what is to be answered is the last."""
        return self._lines

    @property
    def settings(self) -> AgentSettings:
        return self.brief.settings

    def may_use(self, tool: str) -> bool:
        """By the settings of the agent; in the last turn there are no tools."""
        tools = self.settings.tools
        return not self.last and (tools is None or tool in tools)

    # -- what the agent says

    def say(self, piece: str) -> None:
        """A piece of a text, for those who watch. The whole is added, or returned, in the end."""
        self._hearer.said(piece)

    def add(self, line: Line) -> None:
        self._kept.append(_encode(line))
        self._lines.append(line)
        if line.role != "user":  # whoever said that to us has it in the journal already
            self._hearer.line(line)

    def think(self, text: str) -> None:
        self.add(Line(role="assistant", kind=Kind.THOUGHT, text=text))

    def call(self, tool: str, arguments: Json = None, *, id: str = "") -> None:
        self.add(Line(role="assistant", kind=Kind.CALL, tool=tool, arguments=arguments, call=id))

    def result(self, tool: str, text: str, *, id: str = "", failed: bool = False) -> None:
        self.add(Line(role="tool", kind=Kind.RESULT, tool=tool, text=text, call=id, failed=failed))

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        """More of it, since the last time: `turns` are requests to the model."""
        self._hearer.spent(turns=turns, tokens=tokens, cost=cost)

    def phase(self, text: str) -> None:
        self._hearer.phase(text)

    # -- what it is told, and asks

    def hear(self, text: str) -> None:
        """The host's side of `heard`."""
        self._steered.append(text)

    @property
    def unheard(self) -> bool:
        return bool(self._steered)

    def heard(self) -> Sequence[Line]:
        """The messages to the agent since it last looked; they are in the conversation from now on. A loop
        that does not look is called once more with them.
        """
        lines = [Line(role="user", text=text) for text in self._steered]
        self._steered.clear()
        for line in lines:
            self.add(line)
        return lines

    async def ask(self, text: str, *choices: str) -> Reply:
        """A question to whoever started this, or a person. Always answered: see `reply.by`."""
        offered = tuple(Choice(choice, choice) for choice in choices)
        return await self._hearer.ask(Question(id=self._question(), text=text, choices=offered))

    async def allowed(self, tool: str, arguments: Json = None) -> bool:
        """By rule, or by a person."""
        question = permission(self._question(), tool, verb="call", arguments=arguments)
        return (await self._hearer.ask(question)).allows is True

    def _question(self) -> str:
        """The same for the same place in the conversation."""
        self._asked += 1
        return f"{self._kept.path.stem}.{len(self._lines)}.{self._asked}"


def lines_of(kept: AppendLog) -> list[Line]:
    return [_decode(record) for record in kept.records()]


def as_line(given: object) -> Line:
    if not isinstance(given, Line):
        raise InvalidInput(
            f"A loop yields texts and Lines, not {type(given).__name__}.",
            hint="Return another result from an async function.",
        )
    return given
