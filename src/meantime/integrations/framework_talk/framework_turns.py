"""The parts that every framework's agent as a task shares: its sessions are files, and a turn is one run."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Generic, TypeVar

from meantime.execution.containment import contained
from meantime.integrations.agent_host.host_errors import raised
from meantime.integrations.python_agent import PythonAgent
from meantime.kernel.lines import Line
from meantime.ports.clock import Clock
from meantime.ports.session import Brief, Hearer, Prompt, Turned


class FrameworkTurn(ABC):
    """One turn, while it goes on."""

    def __init__(self, prompt: Prompt, hearer: Hearer) -> None:
        self.steered: list[str] = []  # messages to the agent that no request has brought to it yet
        self._prompt = prompt
        self._hearer = hearer
        self._said = ""  # in a response that has not ended

    async def run(self) -> Turned:
        try:
            with contained():
                return await self._whole()
        except asyncio.CancelledError:
            return self._stopped()
        except Exception as problem:
            return self._failed(problem)
        finally:
            self._leave()

    def steer(self, text: str) -> bool:
        """False where it is too late for this turn."""
        self.steered.append(text)
        return True

    @abstractmethod
    async def _whole(self) -> Turned: ...

    @abstractmethod
    def sync(self) -> None:
        """All that was said is on disk when this returns. Called in a thread, when the turn is over."""

    def _stopped(self) -> Turned:
        """The text so far is kept, even of a response that did not end."""
        if self._said:
            self._hearer.line(Line(role="assistant", text=self._said))
        return Turned(text=self._said, stopped=True)

    def _failed(self, problem: Exception) -> Turned:
        return raised(problem, "agent_error")

    def _leave(self) -> None:  # noqa: B027  most hold nothing
        """Gives back what the turn holds, however it ended."""


T = TypeVar("T", bound=FrameworkTurn)


class FrameworkTurns(ABC, Generic[T]):
    """Agents of one framework. suffix: of the files that keep their sessions."""

    def __init__(self, clock: Clock, suffix: str) -> None:
        self._clock = clock
        self._suffix = suffix
        self._running: dict[str, T] = {}

    def path(self, folder: Path, session: str) -> Path:
        return folder / f"{session}{self._suffix}"

    def begin(self, path: Path) -> None:
        path.touch(0o600)

    def steer(self, session: str, text: str) -> bool:
        turn = self._running.get(session)
        return turn is not None and turn.steer(text)

    async def prompt(
        self, agent: PythonAgent, session: str, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> Turned:
        turn = await self._turn(agent, session, path, prompt, brief, hearer)
        self._running[session] = turn
        try:
            return await turn.run()
        finally:
            del self._running[session]
            await asyncio.to_thread(turn.sync)

    @abstractmethod
    def fork(self, path: Path, copy: Path) -> None:
        """Copies all that was said until now, from a session that may be at work."""

    @abstractmethod
    def lines(self, path: Path) -> Sequence[Line]: ...

    @abstractmethod
    async def _turn(
        self, agent: PythonAgent, session: str, path: Path, prompt: Prompt, brief: Brief, hearer: Hearer
    ) -> T: ...
