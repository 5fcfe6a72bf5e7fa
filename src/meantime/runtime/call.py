"""call: inline or job, never both. We do not move the work; we stop waiting for it."""

from __future__ import annotations

import asyncio
from typing import Any

from meantime.kernel.errors import (
    Closed,
    Degraded,
    Duplicate,
    LedgerError,
    TaskCancelled,
    TaskFailed,
    TaskLost,
    TaskTimedOut,
)
from meantime.kernel.model import Task
from meantime.kernel.outcomes import Report
from meantime.kernel.timeouts import check
from meantime.kernel.work import Order
from meantime.ports.engine import Engine
from meantime.ports.runner import CURRENT, Assignment
from meantime.ports.tasks import Answer, Options

from .admit import Admission
from .batches import Batches
from .context import WorkContext
from .record import Record, duplicate_call, duplicate_id
from .run import Runs
from .settings import Settings
from .submit import Submission


class Foreground:
    """One call while somebody waits for it: the work, and what it would be as a task."""

    def __init__(self, assignment: Assignment, context: WorkContext, began: float) -> None:
        self.assignment = assignment
        self.context = context
        self.began = began
        self.performing: asyncio.Task[Report]
        self.promoting = False  # on its way to the ledger: the commit decides what it is
        self.left = False  # its caller is gone

    @property
    def task(self) -> Task:
        return self.assignment.task


class Calls:
    """A foreground call has no slot and waits for none: background work cannot starve it."""

    def __init__(
        self,
        record: Record,
        submission: Submission,
        batches: Batches,
        admission: Admission,
        runs: Runs,
        engine: Engine,
        settings: Settings,
    ) -> None:
        self._record = record
        self._submission = submission
        self._batches = batches
        self._admission = admission
        self._runs = runs
        self._engine = engine
        self._settings = settings
        self._called: set[tuple[str, str]] = set()  # tool calls that run inline now
        self._inline: set[Foreground] = set()

    async def call(self, thread: str, order: Order, options: Options, threshold: float | None) -> Answer:
        batch = await self._batches.choose(thread, options.batch)
        task = self._submission.new_task(thread, order, options, batch, running=True)
        assignment = Assignment(task, order.target, order.args, order.kwargs, foreground=True)
        self._engine.runner(order.work.kind).check(task, assignment)
        limit = None if threshold in (None, -1) else check(threshold)
        await self._check_new(task)
        key = (thread, task.tool_call_id or task.id)
        self._called.add(key)
        call = self._begin(assignment)
        self._inline.add(call)
        try:
            return await self._answer(call, limit)
        finally:
            self._inline.discard(call)
            self._called.discard(key)

    async def _check_new(self, task: Task) -> None:
        """Before the work runs: a call that has its task already must not be executed again."""
        call = task.tool_call_id
        if await self._record.store.load(task.id) is not None:
            raise duplicate_id(task.id)
        if call is None:
            return
        existing = await self._record.store.called(task.thread, call)
        if existing is not None or (task.thread, call) in self._called:
            raise duplicate_call(call, existing or "still running in the foreground")

    def _begin(self, assignment: Assignment) -> Foreground:
        began = self._record.clock.monotonic()
        call = Foreground(assignment, self._runs.new_context(assignment.task), began)
        call.performing = asyncio.get_running_loop().create_task(self._perform(call))
        return call

    async def _perform(self, call: Foreground) -> Report:
        CURRENT.set(call.context)
        return await self._engine.perform(call.assignment, call.context)

    async def _answer(self, call: Foreground, threshold: float | None) -> Answer:
        timeout = call.task.run.timeout
        try:
            if threshold is not None and (timeout is None or threshold < timeout):
                ended = await self._ends_within(call, threshold)
                if not ended and await self._promote(call):
                    return Answer("background", task=call.task)
            if timeout is not None and not await self._ends_within(call, timeout):
                raise await self._time_out(call, timeout)
            return _in_time(call.task, await asyncio.shield(call.performing))
        except asyncio.CancelledError:
            # The caller is gone. What is a task goes on; what is not is stopped with it.
            call.left = True
            if not call.promoting and call.task.id not in self._record.live:
                self._stop(call)
            raise

    async def _ends_within(self, call: Foreground, seconds: float) -> bool:
        """Whether the work ends before it has run for so long."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = max(0.0, seconds - (self._record.clock.monotonic() - call.began))
        alarm = self._record.clock.call_later(left, lambda: over.done() or over.set_result(None))
        waits: set[asyncio.Future[Any]] = {call.performing, over}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
        return call.performing.done()

    async def _promote(self, call: Foreground) -> bool:
        """Records the running call as a task. If that fails we go on waiting inline: the work is
        never executed again."""

        def adopt(assignment: Assignment) -> None:
            self._runs.adopt(assignment, call.context, call.performing, call.began)

        reserved = self._admission.reserve(call.assignment, adopt)

        def decided(task: Task, done: bool) -> None:
            call.promoting = False
            reserved(task, done)
            if call.left and not done:
                self._stop(call)

        call.promoting = True
        try:
            await self._record.create(call.task, decided)
        except (LedgerError, Degraded, Duplicate, Closed):
            return False
        return True

    async def _time_out(self, call: Foreground, timeout: float) -> TaskTimedOut:
        self._stop(call)
        await self._ends_within(call, timeout + self._settings.stop_deadline)
        return TaskTimedOut(f"The call did not end within {timeout:g} s.", call.task)

    def close(self) -> None:
        """Calls that somebody still waits for are asked to stop, like everything that runs here."""
        for call in self._inline:
            self._stop(call)

    def _stop(self, call: Foreground) -> None:
        call.context.ask_to_stop()
        self._engine.stop(call.task)


def _in_time(task: Task, report: Report) -> Answer:
    """The tool's own exception is the tool's own failure, a TimeoutError too."""
    if report.result is not None:
        return Answer("synchronous", report.result.value)
    if report.stopped:
        raise TaskCancelled("The call was stopped.", task)
    if report.exception is not None:
        raise report.exception
    if report.error is not None:
        raise TaskFailed(report.error.message, task)
    raise TaskLost(report.lost or "The call was stopped.", task)
