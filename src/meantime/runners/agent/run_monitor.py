"""Receives a host's reports during a run: keeps them, counts them, and reports when a limit is reached."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager

import msgspec

from meantime.kernel.budgets import WARN_AT, Spending
from meantime.kernel.durations import duration
from meantime.kernel.lines import Kind, Line
from meantime.kernel.questions import Question
from meantime.kernel.timeline import key_argument
from meantime.ports.clock import Alarm, Clock
from meantime.ports.runner import Context
from meantime.ports.session import AgentSettings, Gate

from .budget_meter import BudgetMeter
from .checkpoint import Halt
from .message_buffer import MessageBuffer
from .question_policy import QuestionPolicy
from .session_log import SessionLog

_encode = msgspec.json.Encoder(order="sorted").encode


class RunMonitor(QuestionPolicy):
    """The Hearer of one run."""

    def __init__(
        self,
        settings: AgentSettings,
        journal: SessionLog,
        context: Context,
        gate: Gate,
        clock: Clock,
        tally: BudgetMeter,
        warn: Callable[[str], None],
        asked: Callable[[Question | None, float], None],
    ) -> None:
        super().__init__(settings, context, gate, clock, asked)
        self.halt: Halt | None = None
        self.halted = asyncio.Event()
        self.last = False  # the last turn: it is not counted, and not watched
        self.speech = MessageBuffer()
        self._journal = journal
        self._tally = tally
        self._warn = warn
        self._warned: set[str] = set()
        self._has_warned = False  # of a limit or of silence: its progress says so
        self._repeated: tuple[bytes, int] = (b"", 0)
        self._heard_at = clock.monotonic()
        self._watching: Alarm | None = None
        self._unkept = False

    @property
    def partial(self) -> str:
        """The agent's text, as far as it came."""
        return self.speech.text

    # -- what a host says

    def said(self, text: str) -> None:
        self.alive()
        self.speech.piece(text)
        with self.keeping():
            self._journal.said(text)

    def line(self, line: Line) -> None:
        self.alive()
        with self.keeping():
            line = self._journal.line(line)
        if line.kind is Kind.CALL and not self.has(line.id):
            self._context.progress(
                tool=line.tool, phase=line.tool, message=self._note(key_argument(line.arguments))
            )
            self._count(Spending(tool_calls=1))
            self._look_for_loop(line)
        elif line.kind is Kind.RESULT:
            self.look()  # what it has started may have spent the rest meanwhile
        elif line.role == "assistant" and line.kind is Kind.TEXT:
            self.speech.message(line.text)

    def has(self, id: str) -> bool:
        return self._journal.has(id)

    @contextmanager
    def keeping(self) -> Generator[None]:
        """A full disk does not end the work; a warning is logged once that its conversation is not kept."""
        try:
            yield
        except OSError as problem:
            if not self._unkept:
                self._unkept = True
                self._context.progress(message=f"what it says is not kept: {problem.strerror}")

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        self.alive()
        self._context.spent(turns=turns, tokens=tokens, cost=cost)
        self._count(Spending(turns=turns, tokens=tokens, cost=cost))

    def phase(self, text: str) -> None:
        self.alive()
        self._context.progress(phase=text, message=self._note(""))

    def _note(self, text: str) -> str | None:
        """A warning stays, whatever is done meanwhile."""
        return None if self._unkept or self._has_warned else text

    def alive(self) -> None:
        self._heard_at = self._clock.monotonic()

    def noted(self, text: str) -> None:
        with self.keeping():
            self._journal.line(Line(role="system", text=text))

    # -- limits

    def stop(self, halt: Halt) -> None:
        if self.halt is None and not self.last:
            self.halt = halt
            self.halted.set()

    def look(self) -> None:
        """Whether it is enough already."""
        part, name = self._tally.spent()
        name = name.replace("_", " ")
        if part >= 1.0:
            self.stop(Halt("budget_spent", f"The budget of {name} is spent.", "MAX_TURNS"))
        elif part >= WARN_AT:
            self.warn(name, f"{int(part * 100)} % of the {name} are spent")

    def seconds_left(self, now: float) -> tuple[float, float] | None:
        return self._tally.seconds_left(now)

    def warn(self, what: str, text: str) -> None:
        """Once about each limit: those who watch, and the agent itself."""
        if what not in self._warned and not self.last:
            self._warned.add(what)
            self._has_warned = True
            self._context.warn(text)
            self._warn(text)

    def _count(self, more: Spending) -> None:
        self._tally.add(more)
        self.look()

    def _look_for_loop(self, line: Line) -> None:
        call = _encode([line.tool, line.arguments])
        before, times = self._repeated
        times = times + 1 if call == before else 1
        self._repeated = (call, times)
        if 0 < self._settings.repeats <= times:
            text = f"It called {line.tool} {times} times in a row with the same arguments."
            self.stop(Halt("loop", text))

    # -- silence

    def watch(self) -> None:
        """Looks again when it would have been silent for too long."""
        patience = self._settings.stall
        if patience <= 0:
            return
        if self.resting or self.last:
            self.alive()
        silent = self._clock.monotonic() - self._heard_at
        if silent >= patience:
            if self._settings.on_stall == "stop":
                self.stop(Halt("stalled", f"It reported nothing for {duration(silent)}."))
                return
            self._has_warned = True
            self._context.warn(f"silent for {duration(silent)}")
            self.alive()  # said; it is looked at again after as long
            silent = 0.0
        self._watching = self._clock.call_later(max(0.05, patience - silent), self.watch)

    def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
