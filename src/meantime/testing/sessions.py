"""A host of sessions without a model: what its agent does in a turn is a function of yours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from meantime.kernel.conversation import Line
from meantime.kernel.errors import Refused
from meantime.ports.session import AgentSettings, Brief, Hearer, Prompt, SessionAbilities, Turned

Turn: TypeAlias = Callable[[Prompt, Hearer], Awaitable[str | Turned]]


class ScriptedHost:
    """Hand the same one to a second Meantime.open: its sessions survive, as an agent's own store would."""

    def __init__(self, turn: Turn, abilities: SessionAbilities | None = None) -> None:
        self.abilities = abilities or SessionAbilities()
        self.sessions: dict[str, list[Line]] = {}
        self.steered: list[str] = []
        self.briefs: list[Brief] = []
        self._turn = turn

    def check(self, name: str, settings: AgentSettings) -> None:
        """Every agent is known here."""

    def open(self, folder: Path) -> None:
        pass

    async def begin(self, brief: Brief) -> str:
        self.briefs.append(brief)
        session = f"s-{brief.task}"
        self.sessions[session] = []
        return session

    async def fork(self, session: str, brief: Brief) -> str:
        if session not in self.sessions:
            raise Refused("The session to fork is gone.", code="session_gone")
        copy = await self.begin(brief)
        self.sessions[copy] = list(self.sessions[session])
        return copy

    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        said = self.sessions[session]
        said.append(Line(role="user", text=prompt.text))
        turned = await self._turn(prompt, hearer)
        if isinstance(turned, str):
            turned = Turned(text=turned)
        if turned.text:
            line = Line(role="assistant", text=turned.text)
            said.append(line)
            hearer.line(line)
        return turned

    async def steer(self, session: str, text: str) -> bool:
        self.steered.append(text)
        self.sessions[session].append(Line(role="user", text=text))
        return True

    async def exists(self, session: str, settings: AgentSettings) -> bool:
        return session in self.sessions

    async def lines(self, session: str, settings: AgentSettings) -> Sequence[Line]:
        return self.sessions[session]

    async def close(self) -> None:
        pass
