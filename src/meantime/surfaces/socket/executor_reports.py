"""Reports of connected processes about the functions that they run: progress, questions, endings."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from meantime.kernel.errors import MeantimeError, NotFound
from meantime.kernel.outcomes import Report
from meantime.kernel.questions import Reply
from meantime.link import wire_errors
from meantime.link.frames import (
    Ended,
    EndingAcknowledged,
    Fence,
    QuestionAsked,
    Replied,
    Saying,
    UnknownFrame,
    Withdraws,
    from_wire,
)
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import Stopped
from meantime.ports.tasks import Tasks

from .executor_table import ConnectedExecutor, RemoteRun

NOT_THERE = "The process that had handed it in does not have it any more."
KeepLate = Callable[[str, str, Fence, Report], Awaitable[None]]


class ExecutorReports:
    """`keep_late` takes the report of a run that was given up, when its ending is on record."""

    def __init__(self, tasks: Tasks, keep_late: KeepLate) -> None:
        self._tasks = tasks
        self._keep_late = keep_late
        self._beside = BackgroundTasks()

    def saying(self, executor: ConnectedExecutor, frame: Saying) -> None:
        run = executor.run(frame.task, frame.fence)
        if run is not None:
            _relay(run, frame)
            run.context.relay_deaf(frame.is_deaf)

    def ended(self, executor: ConnectedExecutor, frame: Ended) -> None:
        run = executor.run(frame.task, frame.fence)
        if run is not None:
            _relay(run, frame)
            run.end(from_wire(frame.report))
        self._spawn(self._acknowledge(executor, frame, is_late=run is None))

    def unknown(self, executor: ConnectedExecutor, frame: UnknownFrame) -> None:
        run = executor.run(frame.task, frame.fence)
        if run is not None:
            run.end(Report(lost=NOT_THERE))

    def question_asked(self, executor: ConnectedExecutor, frame: QuestionAsked) -> None:
        run = executor.run(frame.task, frame.fence)
        asked = (frame.task, frame.question.id)
        if run is not None and asked not in executor.asking:
            executor.asking.add(asked)
            self._spawn(self._answer_question(executor, run, frame))

    async def _answer_question(
        self, executor: ConnectedExecutor, run: RemoteRun, frame: QuestionAsked
    ) -> None:
        said: Reply | None = None
        error = None
        try:
            said = await self._said(frame) if frame.again else None
            said = said or await run.context.ask(frame.question)
        except MeantimeError as problem:
            error = wire_errors.to_wire(problem)
        except Stopped:
            return  # which it hears by itself
        finally:
            executor.asking.discard((frame.task, frame.question.id))
        if executor.wire is not None:
            executor.wire.send(Replied(frame.task, frame.fence, frame.question.id, said, error))

    async def _said(self, frame: QuestionAsked) -> Reply | None:
        """It was answered while the connection was lost."""
        answers = (await self._tasks.get(frame.task, None)).answers
        own = [said for said in answers if said.run == frame.fence[0] and said.question == frame.question.id]
        return own[-1] if own else None

    def withdraws(self, executor: ConnectedExecutor, frame: Withdraws) -> None:
        run = executor.run(frame.task, frame.fence)
        if run is not None:
            run.context.withdraw(frame.question, frame.reply)

    async def _acknowledge(self, executor: ConnectedExecutor, frame: Ended, *, is_late: bool) -> None:
        """Once it is on record. A run without a record is a call, which has its answer, or was deleted."""
        with contextlib.suppress(NotFound):
            await self._tasks.wait([frame.task], None)
            if is_late:
                await self._keep_late(frame.task, executor.id, frame.fence, from_wire(frame.report))
        if executor.wire is not None:
            executor.wire.send(EndingAcknowledged(frame.task, frame.fence))

    def give_back(self, turn: str, *, failed: bool) -> None:
        self._spawn(self._tasks.close_turn(turn, failed=failed))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        async def quietly() -> None:
            with contextlib.suppress(MeantimeError):
                await work

        self._beside.start(quietly())

    def close(self) -> None:
        self._beside.cancel()


def _relay(run: RemoteRun, frame: Saying | Ended) -> None:
    run.context.relay(frame.said.progress, frame.said.emitted, frame.said.session)
    if run.assignment.again:  # what was begun under us, we have timed ourselves
        run.context.running_for(max(0.0, frame.age))
