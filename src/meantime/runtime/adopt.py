"""adopt: what runs already, outside of us, becomes a task. We wait for it, and never execute it."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from meantime.execution.context import WorkContext
from meantime.kernel.constraints import check_fields
from meantime.kernel.errors import InvalidInput
from meantime.kernel.limits import Lane
from meantime.kernel.model import Task
from meantime.kernel.outcomes import Report
from meantime.kernel.timeouts import check_age
from meantime.kernel.work import Order
from meantime.ports.engine import Engine
from meantime.ports.runner import CURRENT, Assignment
from meantime.ports.tasks import Options

from .admit import Admission
from .batches import Batches
from .lineage import parent_of
from .record import Record
from .run import Runs
from .submit import Submission


class Adoption:
    """It cannot queue, because it runs: it takes a slot even where none is free, unless the caller
    asks to be refused then."""

    def __init__(
        self,
        record: Record,
        submission: Submission,
        batches: Batches,
        admission: Admission,
        runs: Runs,
        engine: Engine,
    ) -> None:
        self._record = record
        self._submission = submission
        self._batches = batches
        self._admission = admission
        self._runs = runs
        self._engine = engine

    async def adopt(self, thread: str, order: Order, options: Options, running_for: float) -> Task:
        options = check_fields(options)
        running_for = check_age(running_for)
        began = self._record.clock.monotonic() - running_for
        if options.retry:
            raise InvalidInput(
                "A future that was adopted cannot be run again, so it cannot be retried.",
                hint="Leave retry out, or hand over the function itself with start(Call(fn, …)).",
            )
        if options.on_limit is not None:
            self._admission.is_open(Lane(thread, order.work.kind), on_limit=options.on_limit)
        parent = await parent_of(options, self._record)
        batch = self._batches.choose(thread, options.batch)
        runner = self._engine.runner(order.work.kind)
        task = self._submission.new_task(thread, order, options, runner, batch, parent, running=True)
        task = replace(task, run=replace(task.run, started_at=task.created_at - running_for))
        assignment = Assignment(task, order.target)
        runner.check(task, assignment)

        def launch(assignment: Assignment) -> None:
            context = self._runs.new_context(task)
            performing = asyncio.get_running_loop().create_task(self._perform(assignment, context))
            self._runs.adopt(assignment, context, performing, began)

        await self._record.create(task, self._admission.reserve(assignment, launch))
        return task

    async def _perform(self, assignment: Assignment, context: WorkContext) -> Report:
        CURRENT.set(context)
        return await self._engine.perform(assignment, context)
