"""An agent's requests: answered by rule, by an earlier answer for its task, or by a person."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager

from msgspec.structs import replace

from meantime.kernel.durations import duration
from meantime.kernel.errors import MeantimeError
from meantime.kernel.questions import ASK, Question, Reply, allowed, granted, posed, rejected, ruling
from meantime.ports.clock import Clock
from meantime.ports.runner import Context, Stopped
from meantime.ports.session import AgentSettings, Gate

RULED = "The rules of this agent do not allow it."


class QuestionPolicy(ABC):
    """The part of a Hearer that asks, and that holds the agent's place at its model's gate."""

    def __init__(
        self,
        settings: AgentSettings,
        context: Context,
        gate: Gate,
        clock: Clock,
        asked: Callable[[Question | None, float], None],
    ) -> None:
        """`asked` is told of each question, with its time by our clock, and of None when it is answered."""
        self.gate = gate
        self.leaving = False  # we go, and the agent does not
        self.resting = 0  # it waits for somebody else: its silence means nothing
        self.open: tuple[str, float] | None = None  # what a former owner has asked, and when by our clock
        self.unheard: Reply | None = None  # given before a restart, and perhaps never heard
        self._asked = asked
        self._settings = settings
        self._context = context
        self._clock = clock
        self._inside = False
        self._answers: list[Reply] = []
        self._once: set[str] = set()
        self._one_by_one = asyncio.Lock()

    @abstractmethod
    def noted(self, text: str) -> None: ...

    @abstractmethod
    def alive(self) -> None: ...

    @contextmanager
    def at_rest(self) -> Generator[None]:
        self.resting += 1
        try:
            yield
        finally:
            self.resting -= 1
            self.alive()

    # -- the gate

    async def enter(self) -> None:
        with self.at_rest():
            await self.gate.enter()
        self._inside = True

    def leave(self, *, limited: bool = False, retry_after: float | None = None) -> None:
        if self._inside:
            self._inside = False
            self.gate.leave(limited=limited, retry_after=retry_after)

    # -- questions

    def remember(self, answers: Iterable[Reply]) -> None:
        self._answers += answers

    def grant_once(self, subject: str) -> None:
        """It was allowed before a restart, and the agent will ask again."""
        self._once.add(subject)

    async def ask(self, question: Question) -> Reply:
        self.alive()
        question = posed(question)
        reply = self._known(question)
        if reply is not None:
            return reply
        async with self._one_by_one:
            return self._known(question) or await self._ask_person(question)

    def _known(self, question: Question) -> Reply | None:
        """Without asking anybody; what a rule decides is written down in the journal."""
        if (unheard := self.unheard) is not None and unheard.question == question.id:
            self.unheard = None
            return unheard
        if question.kind != "permission":
            return None
        allows = self._decided(question.subject)
        if allows is None:
            return None
        self.noted(f"permission {'given' if allows else 'refused'} by rule: {question.subject}")
        now = self._clock.now()
        return (
            allowed(question, by="rule", now=now) if allows else rejected(question, RULED, by="rule", now=now)
        )

    def _decided(self, subject: str) -> bool | None:
        if subject in self._once:
            self._once.discard(subject)
            return True
        answered = granted(subject, self._answers)
        if answered is not None:
            return answered
        rule = ruling(subject, self._settings.allow, self._settings.deny, self._settings.otherwise)
        return None if rule == ASK else rule == "allow"

    async def _ask_person(self, question: Question) -> Reply:
        """Nobody waits at the model for a person: the place at the gate is given back meanwhile."""
        was, when = self.open or ("", 0.0)
        asked_at = when if was == question.id else self._clock.monotonic()
        self._asked(question, asked_at)
        was_inside = self._inside
        self.leave()
        try:
            with self.at_rest():
                reply = await self._answered(question, asked_at)
        except MeantimeError as problem:  # there is nobody who could be asked
            reply = rejected(question, str(problem), by="nobody", now=self._clock.now())
        self._answers.append(reply)
        self.noted(f"{question.text}\n{reply.by}: {reply.text or ', '.join(reply.choices)}")
        self._asked(None, 0.0)
        if was_inside:
            await self.enter()
        return reply

    async def _answered(self, question: Question, asked_at: float) -> Reply:
        """The record holds the answer: too late is decided by the same commit as an answer in time.
        The time that it may wait begins when it was asked, whoever the owner was."""
        patience = self._settings.answer_within
        alarm, left = None, max(0.0, asked_at + patience - self._clock.monotonic())
        if patience >= 0:
            question = replace(question, deadline_at=self._clock.now() + left)
        asking = asyncio.ensure_future(self._context.ask(question))
        if patience >= 0:
            alarm = self._clock.call_later(left, lambda: self._give_up(question))
        try:
            await asyncio.wait({asking})
            return asking.result()
        except asyncio.CancelledError:
            asking.cancel()
            if not self.leaving:
                self._context.withdraw(question.id)
            raise
        except Stopped:
            raise asyncio.CancelledError from None  # which is on its way to the host, too
        finally:
            if alarm is not None:
                alarm.cancel()

    def _give_up(self, question: Question) -> None:
        why = f"Nobody answered within {duration(self._settings.answer_within)}."
        self._context.withdraw(question.id, rejected(question, why, by="nobody", now=self._clock.now()))
