"""The functions of this process: held until the owner says run, performed here; their endings are resent
until they are acknowledged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context as CallersContext
from contextvars import copy_context
from functools import partial

from msgspec.structs import replace

from meantime.execution.containment import Escape, is_raisable
from meantime.execution.context import LOOK, NO_TASK, UNFOLLOWED, WorkContext
from meantime.kernel.errors import Disconnected, NotFound, Refused, TaskTimedOut
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Failed, Task, fence_of
from meantime.kernel.outcomes import Report, judge, sound
from meantime.kernel.questions import Question, Reply
from meantime.kernel.work import Order
from meantime.link.frame_connection import MAX_FRAME
from meantime.link.frames import (
    Ended,
    EndingAcknowledged,
    Frame,
    QuestionAsked,
    Replied,
    RunFrame,
    Saying,
    Stop,
    UnknownFrame,
    Withdraws,
    WorkState,
    to_wire,
)
from meantime.link.verb_messages import encode
from meantime.link.wire_errors import from_wire
from meantime.ports.clock import Alarm, Clock
from meantime.ports.engine import Engine
from meantime.ports.runner import CURRENT, Assignment
from meantime.ports.tasks import Answer

SAY_EVERY = 0.25  # seconds
LOOK_AGAIN = 1.0  # seconds between looks at whether the owner does it
STEP_IN = 5.0  # seconds over its timeout, after which a function is stopped though the owner is connected
LEAVE = 10.0  # seconds after which a function that will not stop is waited for no longer
LAST = 1.0  # seconds that functions have to stop when nobody is left to hear of them
TOO_BIG = "The result has {size} bytes as JSON; at most {most} can be sent to the owner of the ledger."


class Held:
    """One function of ours: handed in, perhaps running, perhaps over."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.callers: CallersContext = copy_context()
        self.task: Task | None = None
        self.context: WorkContext | None = None
        self.performing: asyncio.Task[Report] | None = None
        self.ending: Ended | None = None
        self.asked: dict[str, tuple[Question, asyncio.Future[Reply]]] = {}  # what it waits to be answered
        self.awaited = False  # somebody here waits for it, and lets it go
        self.is_saying = False
        self.quiet_until = 0.0
        self.began: float | None = None
        self.alarm: Alarm | None = None
        self.timed_out = False  # stopped by our own clock
        self.was_asked = False  # to stop, and had a moment to notice it
        self.left_behind = asyncio.get_running_loop().create_future()  # it would not stop

    @property
    def is_running(self) -> bool:
        return self.performing is not None and not self.performing.done()

    @property
    def is_deaf(self) -> bool:
        return self.is_running and self.was_asked and self.context is not None and self.context.is_deaf

    @property
    def fence(self) -> tuple[int, int]:
        assert self.task is not None
        return fence_of(self.task.run)

    @property
    def said(self) -> WorkState:
        assert self.context is not None
        return WorkState(self.context.said, self.context.emitted, self.context.session)


Notify = Callable[[str, str, str], Awaitable[str]]  # task, thread, text


class _OwnerQuestions:
    """The questions of one function, asked of the owner, and what it tells its thread."""

    def __init__(self, held: Held, say: Callable[[Frame], None], notify: Notify) -> None:
        self._held = held
        self._say = say
        self._notify = notify

    async def ask(self, question: Question) -> Reply:
        assert self._held.task is not None
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._held.asked[question.id] = (question, answer)
        self._say(QuestionAsked(self._held.task.id, self._held.fence, question))
        try:
            return await answer
        finally:
            del self._held.asked[question.id]

    def withdraw(self, question: str, reply: Reply | None) -> None:
        assert self._held.task is not None
        self._say(Withdraws(self._held.task.id, self._held.fence, question, reply))

    async def notify(self, text: str) -> str:
        assert self._held.task is not None
        try:
            return await self._notify(self._held.task.id, self._held.task.thread, text)
        except NotFound:  # the owner knows of no such task: somebody here waits for it
            raise Refused(NO_TASK, code="cannot_notify", hint=UNFOLLOWED) from None


class Executor:
    """`is_up` tells whether the owner is there, which stops what runs too long. While it is not, and so
    cannot, we do."""

    def __init__(
        self,
        engine: Engine,
        clock: Clock,
        say: Callable[[Frame], None],
        is_up: Callable[[], bool],
        notify: Notify,
    ) -> None:
        self._engine = engine
        self._notify = notify
        self._clock = clock
        self._say = say
        self._is_up = is_up
        self._held: dict[str, Held] = {}

    def hold(self, id: str, order: Order, running_for: float | None = None) -> Held:
        """Before it is handed in: the owner may say run before it has answered."""
        held = self._held[id] = Held(order)
        if running_for is not None:
            held.began = self._clock.monotonic() - running_for
        return held

    def age(self, held: Held) -> float:
        return 0.0 if held.began is None else self._clock.monotonic() - held.began

    def holds(self, id: str) -> bool:
        return id in self._held

    def let_go(self, id: str) -> None:
        """It was not taken, or its caller has its answer."""
        self._held.pop(id, None)

    def repeat(self) -> None:
        """After a reconnect, unacknowledged endings are sent again."""
        for held in self._held.values():
            self._say_again(held)

    def _say_again(self, held: Held) -> None:
        if held.ending is not None:
            self._say(held.ending)
            return
        if held.context is not None:
            self._tell(held)
        for question, _ in held.asked.values():
            assert held.task is not None
            self._say(QuestionAsked(held.task.id, held.fence, question, again=True))

    def left(self, id: str) -> None:
        """Its caller waits no longer: unfinished work keeps running until it has ended, and until that is
        acknowledged.
        """
        held = self._held.get(id)
        if held is None:
            return
        held.awaited = False
        if held.performing is None:
            self.let_go(id)
        else:
            self._say_again(held)

    # -- what the owner says

    def run(self, frame: RunFrame) -> None:
        held = self._held.get(frame.task.id)
        if held is None:
            self._say(UnknownFrame(frame.task.id, fence_of(frame.task.run)))
        elif held.performing is None:
            self._begin(held, frame)
        else:
            self._say_again(held)

    def stop(self, frame: Stop) -> None:
        held = self._held.get(frame.task)
        if held is not None:
            self.stop_held(held)

    def stop_held(self, held: Held) -> None:
        if held.context is not None and held.task is not None:
            held.context.request_stop()
            self._engine.stop(held.task)
            self._clock.call_later(LOOK, lambda: self._after_stop(held))

    def _after_stop(self, held: Held) -> None:
        """A function that never asks whether it should stop will not. The owner waits for it no longer than
        for one of its own, nor does a caller here if no owner is there."""
        held.was_asked = True
        if held.is_deaf:
            self._tell(held)
            if held.timed_out:
                self._leave_behind(held)

    def acknowledged(self, frame: EndingAcknowledged) -> None:
        held = self._held.get(frame.task)
        if held is None or held.awaited or held.ending is None:
            return
        if held.fence == frame.fence:
            del self._held[frame.task]

    def replied(self, frame: Replied) -> None:
        held = self._held.get(frame.task)
        if held is None or held.task is None or held.fence != frame.fence:
            return
        _, answer = held.asked.get(frame.question, (None, None))
        if answer is None or answer.done():
            return
        if frame.reply is not None:
            answer.set_result(frame.reply)
        elif frame.error is not None:
            answer.set_exception(from_wire(frame.error))

    # -- performing

    def _begin(self, held: Held, frame: RunFrame) -> None:
        loop = asyncio.get_running_loop()
        held.task = frame.task
        if held.began is None:
            held.began = self._clock.monotonic()
        held.context = WorkContext(
            frame.task,
            loop,
            self._clock.now,
            partial(self._changed, held),
            asks=_OwnerQuestions(held, self._say, self._notify),
        )
        order = held.order
        assignment = Assignment(frame.task, order.target, order.args, order.kwargs, frame.foreground)
        held.performing = loop.create_task(self._perform(held, assignment), context=held.callers)
        held.performing.add_done_callback(partial(self._ended, held))
        if frame.task.run.timeout is not None:
            left = max(0.0, frame.task.run.timeout - self.age(held))
            held.alarm = self._clock.call_later(left, lambda: self._overdue(held))

    async def _perform(self, held: Held, assignment: Assignment) -> Report:
        assert held.context is not None
        CURRENT.set(held.context)
        report = await self._engine.perform(assignment, held.context)
        return replace(report, timed_out=True) if held.timed_out else report

    def _overdue(self, held: Held) -> None:
        """The owner stops it, and decides how it ended. One that is not there, or does not do it, cannot
        keep it running."""
        assert held.task is not None
        assert held.context is not None
        if not held.is_running or held.context.stops:
            return
        timeout = held.task.run.timeout or 0.0
        if self._is_up() and self.age(held) < timeout + STEP_IN:
            held.alarm = self._clock.call_later(LOOK_AGAIN, lambda: self._overdue(held))
            return
        held.timed_out = True
        self.stop_held(held)
        held.alarm = self._clock.call_later(LEAVE, lambda: self._leave_behind(held))

    def _leave_behind(self, held: Held) -> None:
        if held.is_running and not held.left_behind.done():
            held.left_behind.set_result(None)

    async def outlast(self, held: Held) -> Report:
        """How it ended, for a caller that no owner tells."""
        assert held.performing is not None
        await asyncio.wait([held.performing, held.left_behind], return_when=asyncio.FIRST_COMPLETED)
        return held.performing.result() if held.performing.done() else Report(timed_out=True)

    def _ended(self, held: Held, performing: asyncio.Task[Report]) -> None:
        assert held.task is not None
        if held.alarm is not None:
            held.alarm.cancel()
        if performing.cancelled() or self._held.get(held.task.id) is not held:
            return  # our loop is coming down, or nobody waits for it any more
        ending = Ended(held.task.id, held.fence, to_wire(performing.result()), held.said, self.age(held))
        size = len(encode(ending))
        if size > MAX_FRAME:
            error = Failed(TOO_BIG.format(size=size, most=MAX_FRAME), "too_big")
            ending = replace(ending, report=to_wire(Report(error=error)))
        held.ending = ending
        self._say(ending)

    def _changed(self, held: Held, id: str, now: bool) -> None:
        """The first word goes out at once; after it, what was said meanwhile, now and then."""
        if now:
            self._tell(held)
        elif not held.is_saying:
            held.is_saying = True
            left = max(0.0, held.quiet_until - self._clock.monotonic())
            self._clock.call_later(left, lambda: self._tell(held))

    def _tell(self, held: Held) -> None:
        held.is_saying = False
        held.quiet_until = self._clock.monotonic() + SAY_EVERY
        if held.task is not None and held.ending is None:
            self._say(Saying(held.task.id, held.fence, held.said, self.age(held), held.is_deaf))

    def running(self) -> list[str]:
        return [id for id, held in self._held.items() if held.performing and held.ending is None]

    async def close(self) -> None:
        """Nobody is left to be told of them: they are asked to stop, and get a while for it."""
        left = [self._held[id] for id in self.running()]
        for held in left:
            self.stop_held(held)
        if left:
            await asyncio.wait([held.performing for held in left if held.performing], timeout=LAST)


def inline_answer(report: Report, held: Held) -> Answer:
    """The answer of a call whose function has ended here, without the owner."""
    if report.timed_out:
        assert held.task is not None
        outcome = judge(held.task, sound(report), {}).outcome
        ended = replace(held.task, status=Status.TIMED_OUT, outcome=outcome)
        raise TaskTimedOut(f"The call did not end within {held.task.run.timeout:g} s.", ended)
    if report.result is not None:
        return Answer("synchronous", report.result.value)
    if report.exception is None:
        raise Disconnected("The call was stopped when the owner of the ledger was lost.")
    raise report.exception if is_raisable(report.exception) else Escape(report.exception)
