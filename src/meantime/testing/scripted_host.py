"""Hosts of sessions without a model: what their agent does in a turn is a function of yours."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from meantime.kernel.errors import Refused
from meantime.kernel.lines import Line
from meantime.kernel.questions import Question, Reply
from meantime.ports.session import AgentSettings, Brief, Gate, Hearer, Prompt, SessionAbilities, Turned

Turn: TypeAlias = Callable[[Prompt, Hearer], Awaitable[str | Turned]]
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Line).decode


class ScriptedHost:
    """Hand the same one to a second Meantime.open: its sessions survive, as an agent's own store would.

    kept: its sessions are files in its folder, so that they survive the process, too.
    """

    def __init__(self, turn: Turn, abilities: SessionAbilities | None = None, *, kept: bool = False) -> None:
        self.abilities = abilities or SessionAbilities()
        self.sessions: dict[str, list[Line]] = {}
        self.steered: list[str] = []
        self.briefs: list[Brief] = []
        self.prompts: list[Prompt] = []
        self.turning: set[str] = set()  # sessions with a turn that goes on
        self._turn = turn
        self._kept = kept
        self._folder: Path | None = None

    def check(self, name: str, settings: AgentSettings) -> None:
        """Every agent is known here."""

    def open(self, folder: Path) -> None:
        if not self._kept:
            return
        self._folder = folder
        for path in folder.glob("*.jsonl"):
            self.sessions[path.stem] = [_decode(line) for line in path.read_bytes().splitlines()]

    async def begin(self, brief: Brief) -> str:
        return self._begin(brief, [])

    async def fork(self, session: str, brief: Brief) -> str:
        if not self.abilities.fork:
            raise Refused("This host cannot copy a session.", code="cannot_fork")
        return self._begin(brief, self._known(session))

    def _begin(self, brief: Brief, lines: Sequence[Line]) -> str:
        self.briefs.append(brief)
        session = f"s-{brief.task}"
        self.sessions[session] = []
        for line in lines:
            self._say(session, line)
        return session

    def _known(self, session: str) -> list[Line]:
        if session not in self.sessions:
            raise Refused(f"There is no session {session}.", code="session_gone")
        return self.sessions[session]

    def _say(self, session: str, line: Line) -> None:
        self.sessions[session].append(line)
        if self._folder is None:
            return
        fd = os.open(self._folder / f"{session}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, _encode(line) + b"\n")
        finally:
            os.close(fd)

    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        self._known(session)
        self.prompts.append(prompt)
        if not prompt.again:
            self._say(session, Line(role="user", text=prompt.text, id=prompt.key))
        self.turning.add(session)
        try:
            turned = await self._turn(prompt, hearer)
        finally:
            self.turning.discard(session)
        if isinstance(turned, str):
            turned = Turned(text=turned)
        if turned.text:
            line = Line(role="assistant", text=turned.text)
            self._say(session, line)
            hearer.line(line)
        return turned

    async def steer(self, session: str, text: str) -> bool:
        if not self.abilities.steer or session not in self.turning:
            return False
        self.steered.append(text)
        self._say(session, Line(role="user", text=text))
        return True

    async def exists(self, session: str, settings: AgentSettings) -> bool:
        return self.abilities.resume and session in self.sessions

    async def lines(self, session: str, settings: AgentSettings) -> Sequence[Line]:
        if not self.abilities.history:
            raise Refused("This host keeps no history.", code="no_history")
        return self._known(session)

    async def close(self) -> None:
        pass


class LastingScriptedHost(ScriptedHost):
    """Its turns continue while nobody is here to receive them, as those of a server of agents do."""

    def __init__(self, turn: Turn, abilities: SessionAbilities | None = None) -> None:
        super().__init__(turn, abilities or SessionAbilities(lasting=True))
        self._going: dict[str, asyncio.Task[Turned]] = {}
        self._relays: dict[str, _Relay] = {}
        self._left: set[str] = set()

    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        relay = self._relays[session] = _Relay(hearer)
        going = super().prompt(session, prompt, brief, relay)
        self._going[prompt.key] = asyncio.get_running_loop().create_task(going)
        return await self._relay_to(session, prompt)

    async def follow(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        if prompt.key not in self._going:
            return await self.prompt(session, prompt, brief, hearer)
        self._left.discard(session)
        self._relays[session].pass_on(hearer)
        return await self._relay_to(session, prompt)

    async def _relay_to(self, session: str, prompt: Prompt) -> Turned:
        going = self._going[prompt.key]
        try:
            return await asyncio.shield(going)
        except asyncio.CancelledError:
            if session not in self._left:
                going.cancel()
            raise

    async def leave(self, session: str) -> bool:
        self._left.add(session)
        self._relays[session].forget()
        return True


class _Relay:
    """Keeps reports while nobody receives them. A question is asked again of whoever comes next."""

    def __init__(self, hearer: Hearer) -> None:
        self._hearer: Hearer | None = hearer
        self._gate = hearer.gate
        self._kept: list[Callable[[Hearer], None]] = []
        self._came = asyncio.Event()

    @property
    def gate(self) -> Gate:
        return self._gate

    def forget(self) -> None:
        self._hearer = None

    def has(self, id: str) -> bool:
        return self._hearer is not None and self._hearer.has(id)

    def pass_on(self, hearer: Hearer) -> None:
        self._hearer = hearer
        for said in self._kept:
            said(hearer)
        self._kept.clear()
        self._came.set()
        self._came = asyncio.Event()

    def _pass(self, said: Callable[[Hearer], None]) -> None:
        if self._hearer is None:
            self._kept.append(said)
        else:
            said(self._hearer)

    def said(self, text: str) -> None:
        self._pass(lambda hearer: hearer.said(text))

    def line(self, line: Line) -> None:
        self._pass(lambda hearer: hearer.line(line))

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        self._pass(lambda hearer: hearer.spent(turns=turns, tokens=tokens, cost=cost))

    def phase(self, text: str) -> None:
        self._pass(lambda hearer: hearer.phase(text))

    def alive(self) -> None:
        self._pass(lambda hearer: hearer.alive())

    async def ask(self, question: Question) -> Reply:
        while True:
            hearer, came = self._hearer, self._came
            if hearer is not None:
                asking = asyncio.ensure_future(hearer.ask(question))
                coming = asyncio.ensure_future(came.wait())
                try:
                    await asyncio.wait({asking, coming}, return_when=asyncio.FIRST_COMPLETED)
                    if asking.done() and not asking.cancelled():
                        return asking.result()
                finally:
                    asking.cancel()
                    coming.cancel()
            else:
                await came.wait()
