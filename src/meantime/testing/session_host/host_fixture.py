"""The common part of the checks: a host that is open, prompts that an agent understands, and a recorder of
its reports.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from meantime.kernel.ids import ENTROPY, task_id
from meantime.kernel.lines import Kind, Line
from meantime.kernel.questions import Question, Reply, allowed
from meantime.ports.session import AgentSettings, Brief, Gate, Prompt, SessionHost, Turned

from ..suite.patience import PATIENCE, within

SETTLE = 0.2  # seconds after which a turn that has begun is in its middle
NOWHERE = "no-such-session"


class Script(Struct, frozen=True):
    """The prompts that the agent under test has to understand; `{word}` is put in."""

    say: str = "say {word}"  # it answers with the word
    recall: str = "recall"  # it answers with every word that it was told to say in this session
    wait: str = "wait"  # it works until it is stopped
    slow: str = "slowly say {word}"  # it answers with the word, after a second or so
    odd: str = "odd"  # it answers with ODD, as far as its protocol can carry that


Middle: TypeAlias = Callable[[], Awaitable[object]]
ODD = "größe 漢字 😀 \x1b[31mred\x1b[0m \u202e </conversation> {} \\ \" ' \r\n last"


class OpenGate:
    async def enter(self) -> None: ...

    def leave(self, *, limited: bool = False, retry_after: float | None = None) -> None: ...


class Recorder:
    """A Hearer that keeps what it receives, and gives every permission."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.pieces: list[str] = []
        self.questions: list[Question] = []
        self.began = asyncio.Event()

    @property
    def gate(self) -> Gate:
        return OpenGate()

    @property
    def text(self) -> str:
        """All that the agent has said, whole or in pieces."""
        own = [line.text for line in self.lines if line.role == "assistant" and line.kind is Kind.TEXT]
        return "\n".join((*own, "".join(self.pieces)))

    def said(self, text: str) -> None:
        assert isinstance(text, str), f"said() got {type(text).__name__}"
        self.pieces.append(text)
        self.began.set()

    def has(self, id: str) -> bool:
        return any(line.id == id for line in self.lines)

    def line(self, line: Line) -> None:
        assert isinstance(line, Line), f"line() got {type(line).__name__}"
        self.lines.append(line)
        self.began.set()

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        assert min(turns, tokens, cost) >= 0, "more was spent, never less"

    def phase(self, text: str) -> None:
        self.began.set()

    def alive(self) -> None:
        self.began.set()

    async def ask(self, question: Question) -> Reply:
        msgspec.json.encode(question)
        self.questions.append(question)
        return allowed(question, by="rule", now=0.0)


class HostFixture:
    """One host, open in a folder of its own."""

    def __init__(
        self,
        make: Callable[[], SessionHost],
        settings: AgentSettings,
        folder: Path,
        script: Script | None = None,
        name: str = "agent",
        middle: Middle | None = None,
    ) -> None:
        self._make = make
        self._folder = folder
        self._count = 0
        self.settings = settings
        self.script = script or Script()
        self.name = name
        self._middle = middle
        self.host = self._opened()

    def _opened(self) -> SessionHost:
        host = self._make()
        kept = self._folder / "host"
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        host.open(kept)
        return host

    async def restart(self) -> None:
        """Another process's host, in the same folder."""
        await within(self.host.close(), "close()")
        self.host = self._opened()

    def brief(self) -> Brief:
        task = task_id(os.urandom(ENTROPY))  # no other has it: a host may know a session by it
        folder = self._folder / f"@{task}"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        cwd = self.settings.cwd or str(self._folder)
        env = {"MEANTIME_TASK": task, "MEANTIME_THREAD": "exercise"}
        return Brief(task, self.name, self.settings, cwd, "an exercise", "exercise", folder, env)

    async def begin(self) -> tuple[str, Brief]:
        brief = self.brief()
        session = await within(self.host.begin(brief), "begin()")
        assert session, "a session needs an id"
        return session, brief

    def prompt(self, text: str, brief: Brief, word: str = "") -> Prompt:
        self._count += 1
        return Prompt(text.replace("{word}", word), f"{brief.task}.1.{self._count}")

    async def turn(
        self, session: str, brief: Brief, text: str, word: str = "", hearer: Recorder | None = None
    ) -> Turned:
        prompt = self.prompt(text, brief, word)
        return await within(
            self.host.prompt(session, prompt, brief, hearer or Recorder()), f"prompt({prompt.text!r})"
        )

    async def middle(self, turning: asyncio.Future[Any]) -> None:
        """Until the turn that was just begun is in its middle, or over."""
        if self._middle is None:
            await asyncio.wait({turning}, timeout=SETTLE)
            return
        coming = asyncio.ensure_future(self._middle())
        try:
            await asyncio.wait({turning, coming}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            assert coming.done() or turning.done(), f"no turn came to its middle within {PATIENCE:g} s"
            if coming.done():
                coming.result()
        finally:
            coming.cancel()

    async def say(self, session: str, brief: Brief, word: str, hearer: Recorder | None = None) -> Turned:
        turned = await self.turn(session, brief, self.script.say, word, hearer)
        assert turned.error is None, f"the turn failed: {turned.error}"
        assert word in turned.text, f"{word!r} is not in {turned.text!r}"
        return turned
