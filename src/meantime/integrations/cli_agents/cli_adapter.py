"""The command line of one program, and the meaning of its output. Each has a file of its own."""

from __future__ import annotations

import contextlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from meantime.integrations.agent_host.json_values import part, text_in
from meantime.integrations.agent_host.turn_lines import LineSink, TurnLines
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


class Reader(TurnLines, ABC):
    """Understands what a program says in one turn. It receives every event from the first on, even events
    that a former owner has received; it ignores unknown events.
    """

    def __init__(self, sink: LineSink, used: int = 0) -> None:
        """`used`: tokens of the session before this turn."""
        super().__init__(sink)
        self.used = used
        self.total = used  # and with it
        self.spoke = False  # it has said anything at all
        self.session = ""  # as the program names it
        self.done = False  # the program said that the turn is over
        self.error = ""  # and why it failed
        self.status = 0  # the provider's, where it is told

    @abstractmethod
    def read(self, event: Event) -> None: ...

    # -- what a reader reports: a message ends where something else comes

    def call(self, id: str, tool: str, arguments: Any) -> None:
        self.flush()
        super().call(id, tool, arguments)

    def result(self, id: str, text: Any, *, failed: bool = False) -> None:
        self.flush()
        super().result(id, text_in(text), failed=failed)

    def fail(self, why: str, status: int = 0) -> None:
        self.done = True
        with contextlib.suppress(msgspec.DecodeError):  # the provider's answer as it came
            inner = msgspec.json.decode(why)
            why = text_in(part(inner, "error")) or text_in(part(inner, "message")) or why
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
