"""The host of agents in this process: finds each one, and keeps its sessions in files of its own."""

from __future__ import annotations

import asyncio
import importlib
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from meantime.integrations.agent_host.host_errors import fork_source_gone
from meantime.integrations.python_agent import (
    FRAMEWORKS,
    Framework,
    PythonAgent,
    check_fixed,
    found,
    framework_of,
)
from meantime.kernel.errors import InvalidInput, Refused
from meantime.kernel.lines import Line
from meantime.ports.clock import Clock
from meantime.ports.session import AgentSettings, Brief, Hearer, Prompt, SessionAbilities, Turned

from .loop_turns import LoopTurns

SESSION = re.compile(r"py-[0-9a-f]{20}")


class PythonTurns(Protocol):
    """One way to be an agent."""

    def path(self, folder: Path, session: str) -> Path: ...

    def begin(self, path: Path) -> None: ...

    def fork(self, path: Path, copy: Path) -> None: ...

    def lines(self, path: Path) -> Sequence[Line]: ...

    def steer(self, session: str, text: str) -> bool: ...

    async def prompt(
        self, agent: PythonAgent, session: str, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> Turned: ...


class PythonSessionHost:
    folder_name = "PythonHost"  # on disk, in every ledger
    abilities = SessionAbilities(fork=True, steer=True, resume=True, history=True, paced=True, keeps=True)

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._folder: Path | None = None
        self._agents: dict[str, PythonAgent] = {}
        self._loops: PythonTurns = LoopTurns()
        self._of_frameworks: dict[str, PythonTurns] = {}  # made for the first agent that needs them

    def add(self, name: str, agent: Any) -> AgentSettings:
        given = agent if isinstance(agent, PythonAgent) else PythonAgent(agent)
        self._agents[name] = given
        return given.settings

    # -- who is meant

    def check(self, name: str, settings: AgentSettings) -> None:
        check_fixed(name, self._agent(name, settings).agent, settings)

    def _agent(self, name: str, settings: AgentSettings) -> PythonAgent:
        if name not in self._agents:
            if not settings.agent:
                raise InvalidInput(
                    f"The agent {name} names no object.",
                    hint='Write agent = "module:object" for it.',
                )
            self._agents[name] = PythonAgent(found(name, settings.agent))
        return self._agents[name]

    def _turns(self, agent: PythonAgent) -> PythonTurns:
        framework = framework_of(agent.agent)
        return self._loops if framework is None else self._turns_of(framework)

    def _turns_of(self, framework: Framework) -> PythonTurns:
        if framework.name not in self._of_frameworks:
            module, _, name = framework.turns.partition(":")
            made = getattr(importlib.import_module(module), name)(self._clock, framework.suffix)
            self._of_frameworks[framework.name] = made
        return self._of_frameworks[framework.name]

    # -- sessions

    def open(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, turns: PythonTurns, session: str) -> Path:
        assert self._folder is not None, "not open"
        return turns.path(self._folder, session)

    def _kept(self, session: str) -> tuple[PythonTurns, Path] | None:
        """Which kind it is, and where; an id from elsewhere is never a path."""
        if self._folder is None or not SESSION.fullmatch(session):
            return None
        path = self._loops.path(self._folder, session)
        if path.exists():
            return self._loops, path
        for framework in FRAMEWORKS:
            path = self._folder / f"{session}{framework.suffix}"
            if path.exists():
                return self._turns_of(framework), path
        return None

    async def begin(self, brief: Brief) -> str:
        turns = self._turns(self._agent(brief.agent, brief.settings))
        session = f"py-{os.urandom(10).hex()}"
        turns.begin(self._path(turns, session))
        return session

    async def fork(self, session: str, brief: Brief) -> str:
        kept = self._kept(session)
        turns = self._turns(self._agent(brief.agent, brief.settings))
        if kept is None or kept[0] is not turns:
            raise fork_source_gone()
        copy = f"py-{os.urandom(10).hex()}"
        await asyncio.to_thread(turns.fork, kept[1], self._path(turns, copy))
        return copy

    async def prompt(self, session: str, prompt: Prompt, brief: Brief, hearer: Hearer) -> Turned:
        agent = self._agent(brief.agent, brief.settings)
        turns = self._turns(agent)
        kept = self._kept(session)
        if kept is None or kept[0] is not turns:
            raise Refused("The session is gone.", code="session_gone", hint="Start a new task instead.")
        return await turns.prompt(agent, session, kept[1], prompt, brief, hearer)

    async def steer(self, session: str, text: str) -> bool:
        return any(turns.steer(session, text) for turns in (self._loops, *self._of_frameworks.values()))

    async def exists(self, session: str, settings: AgentSettings) -> bool:
        return self._kept(session) is not None

    async def lines(self, session: str, settings: AgentSettings) -> Sequence[Line]:
        kept = self._kept(session)
        if kept is None:
            raise Refused("The session is gone.", code="session_gone")
        return await asyncio.to_thread(kept[0].lines, kept[1])

    def forget(self, session: str) -> None:
        kept = self._kept(session)
        if kept is not None:
            kept[1].unlink(missing_ok=True)

    def old_sessions(self, seconds: float) -> Sequence[str]:
        if self._folder is None:
            return []
        latest = time.time() - seconds  # files have the time of the wall
        found: list[str] = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                session = entry.name.partition(".")[0]
                with suppress(FileNotFoundError):  # forgotten just now
                    if SESSION.fullmatch(session) and entry.stat().st_mtime <= latest:
                        found.append(session)
        return found

    async def close(self) -> None:
        """Nothing is held open between turns."""
