"""Hears what a host says during a run: keeps it, counts it, and says when it is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from msgspec import Struct

from meantime.kernel.budgets import WARN_AT, Spending
from meantime.kernel.conversation import Kind, Line
from meantime.kernel.durations import duration
from meantime.kernel.permissions import granted, ruling
from meantime.kernel.questions import Question, Reply, allowed, rejected
from meantime.ports.clock import Alarm, Clock
from meantime.ports.runner import Context
from meantime.ports.session import AgentSettings, Gate

from .journal import Journal
from .tally import Tally

MAX_PARTIAL = 256 << 10  # characters of what was said last
_encode = msgspec.json.Encoder(order="sorted").encode


class Halt(Struct, frozen=True):
    """Why a run is to come to its end now."""

    code: str
    message: str
    terminate_reason: str = "ERROR"


class Ear:
    """The Hearer of one run."""

    def __init__(
        self,
        settings: AgentSettings,
        journal: Journal,
        context: Context,
        gate: Gate,
        clock: Clock,
        tally: Tally,
        answers: tuple[Reply, ...],
        warn: Callable[[str], None],
    ) -> None:
        self.gate = gate
        self.halt: Halt | None = None
        self.halted = asyncio.Event()
        self.last = False  # the last turn: it is not counted, and not watched
        self.leaving = False  # we go, and the agent does not
        self._settings = settings
        self._journal = journal
        self._context = context
        self._clock = clock
        self._tally = tally
        self._answers = list(answers)
        self._warn = warn
        self._warned = False
        self._text: list[str] = []
        self._size = 0
        self._repeated: tuple[bytes, int] = (b"", 0)
        self._once: set[str] = set()
        self._asking = 0
        self._heard_at = clock.monotonic()
        self._watching: Alarm | None = None

    @property
    def partial(self) -> str:
        """What the agent said last, as far as it came."""
        return "".join(self._text)

    # -- what a host says

    def said(self, text: str) -> None:
        self.alive()
        if self._size < MAX_PARTIAL:
            self._text.append(text)
            self._size += len(text)
        self._journal.said(text)

    def line(self, line: Line) -> None:
        self.alive()
        self._journal.line(line)
        if line.kind is Kind.CALL:
            self._context.progress(tool=line.tool, phase=line.tool)
            self._count(Spending(tool_calls=1))
            self._look_for_loop(line)
        elif line.role == "assistant" and line.kind is Kind.TEXT:
            self._text, self._size = [line.text[:MAX_PARTIAL]], len(line.text)
        elif line.role == "user":
            self._text, self._size = [], 0

    def spent(self, *, turns: int = 0, tokens: int = 0, cost: float = 0.0) -> None:
        self.alive()
        self._context.spent(turns=turns, tokens=tokens, cost=cost)
        self._count(Spending(turns=turns, tokens=tokens, cost=cost))

    def phase(self, text: str) -> None:
        self.alive()
        self._context.progress(phase=text)

    def alive(self) -> None:
        self._heard_at = self._clock.monotonic()

    # -- limits

    def stop(self, halt: Halt) -> None:
        if self.halt is None and not self.last:
            self.halt = halt
            self.halted.set()

    def _count(self, more: Spending) -> None:
        self._tally.add(more)
        part, name = self._tally.spent()
        if part >= 1.0:
            name = name.replace("_", " ")
            self.stop(Halt("budget_spent", f"The budget of {name} is spent.", "MAX_TURNS"))
        elif part >= WARN_AT and not self._warned:
            self._warned = True
            text = f"{int(part * 100)} % of the {name.replace('_', ' ')} are spent"
            self._context.progress(message=text)
            self._warn(text)

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
        if patience < 0:
            return
        silent = self._clock.monotonic() - self._heard_at
        if silent >= patience and not self._asking and not self.last:
            self._context.progress(message=f"silent for {duration(silent)}")
            if self._settings.on_stall == "stop":
                self.stop(Halt("stalled", f"Nothing was heard of it for {duration(silent)}."))
                return
            silent = 0.0  # said; it is looked at again after as long
        self._watching = self._clock.call_later(max(0.05, patience - silent), self.watch)

    def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()

    # -- questions

    def grant_once(self, subject: str) -> None:
        """It was allowed before a restart, and the agent will ask again."""
        self._once.add(subject)

    async def ask(self, question: Question) -> Reply:
        self.alive()
        now = self._clock.now()
        if question.kind == "permission":
            decided = self._decided(question.subject)
            if decided is True:
                return allowed(question, by="rule", now=now)
            if decided is False:
                return rejected(question, "The rules of this agent do not allow it.", by="rule", now=now)
        reply = await self._asked(question)
        if reply is None:
            why = f"Nobody answered within {duration(self._settings.answer_within)}."
            return rejected(question, why, by="nobody", now=self._clock.now())
        self._answers.append(reply)
        self.alive()
        return reply

    def _decided(self, subject: str) -> bool | None:
        if subject in self._once:
            self._once.discard(subject)
            return True
        answered = granted(subject, self._answers)
        if answered is not None:
            return answered
        rule = ruling(subject, self._settings.allow, self._settings.deny, self._settings.otherwise)
        return None if rule == "ask" else rule == "allow"

    async def _asked(self, question: Question) -> Reply | None:
        asking = asyncio.ensure_future(self._context.ask(question))
        alarm = self._clock.call_later(self._settings.answer_within, asking.cancel)
        self._asking += 1
        try:
            await asyncio.wait({asking})
            if not asking.cancelled():
                return asking.result()
            self._context.withdraw(question.id)
            return None
        except asyncio.CancelledError:
            asking.cancel()
            if not self.leaving:
                self._context.withdraw(question.id)
            raise
        finally:
            self._asking -= 1
            alarm.cancel()
