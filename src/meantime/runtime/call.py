"""call: inline or job, never both. We do not move the work; we stop waiting for it."""

from __future__ import annotations

import asyncio
from typing import Any

from meantime.kernel.errors import Degraded, LedgerError
from meantime.kernel.model import Task
from meantime.kernel.outcomes import Report
from meantime.kernel.timeouts import check
from meantime.kernel.work import Order
from meantime.ports.engine import Engine
from meantime.ports.runner import CURRENT, Assignment
from meantime.ports.tasks import Answer, Options

from .admit import Admission
from .context import WorkContext
from .record import Record
from .run import Runs
from .submit import Submission


class Calls:
    """A foreground call has no slot and waits for none: background work cannot starve it."""

    def __init__(
        self, record: Record, submission: Submission, admission: Admission, runs: Runs, engine: Engine
    ) -> None:
        self._record = record
        self._submission = submission
        self._admission = admission
        self._runs = runs
        self._engine = engine

    async def call(self, thread: str, order: Order, options: Options, threshold: float | None) -> Answer:
        task = self._submission.new_task(thread, order, options, running=True)
        assignment = Assignment(task, order.target, order.args, order.kwargs)
        self._engine.runner(order.work.kind).check(task, assignment)
        context = self._runs.new_context(task)
        began = self._record.clock.monotonic()
        performing = asyncio.get_running_loop().create_task(self._perform(assignment, context))
        try:
            if threshold is not None and not await self._ends_within(performing, check(threshold)):
                promoted = await self._promote(assignment, context, performing, began)
                if promoted is not None:
                    return Answer("background", task=promoted)
            return _answer(await asyncio.shield(performing))
        except asyncio.CancelledError:
            # The caller is gone. What is a task goes on; what is not is stopped with it.
            if task.id not in self._record.live:
                context.ask_to_stop()
                self._engine.stop(task)
            raise

    async def _perform(self, assignment: Assignment, context: WorkContext) -> Report:
        CURRENT.set(context)
        return await self._engine.perform(assignment, context)

    async def _ends_within(self, performing: asyncio.Task[Report], threshold: float) -> bool:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self._record.clock.call_later(threshold, lambda: over.done() or over.set_result(None))
        waits: set[asyncio.Future[Any]] = {performing, over}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
        return performing.done()

    async def _promote(
        self, assignment: Assignment, context: WorkContext, performing: asyncio.Task[Report], began: float
    ) -> Task | None:
        """Records the running call as a task. If that fails we go on waiting inline: the work is
        never executed again."""

        def adopt(assignment: Assignment) -> None:
            self._runs.adopt(assignment, context, performing, began)

        try:
            await self._record.create(assignment.task, self._admission.reserve(assignment, adopt))
        except (LedgerError, Degraded):
            return None
        return assignment.task


def _answer(report: Report) -> Answer:
    """The tool's own exception is the tool's own failure, a TimeoutError too."""
    if report.result is not None:
        return Answer("synchronous", report.result.value)
    if report.exception is not None:
        raise report.exception
    raise asyncio.CancelledError
