"""call: inline or job, never both. We do not move the work; we stop waiting for it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, cast

from meantime.execution.context import LOOK
from meantime.kernel.constraints import check_fields
from meantime.kernel.errors import Duplicate
from meantime.kernel.ids import check_id
from meantime.kernel.model import Task
from meantime.kernel.outcomes import TIMEOUT, Report
from meantime.kernel.timeouts import UNBOUNDED, check
from meantime.kernel.work import Order
from meantime.ports.engine import Engine
from meantime.ports.runner import CURRENT, Assignment, LastingRunner, Runner
from meantime.ports.tasks import Answer, Options

from .admit import Admission
from .batches import Batches
from .foreground_call import Foreground, answer_of, find, timed_out, too_late
from .lineage import parent_of
from .record import Record, duplicate_call
from .run import Runs
from .settings import Settings
from .submit import Submission

REMEMBERED = 256  # calls that have ended: a promotion that comes too late is told so


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
        self._inline: dict[str, Foreground] = {}
        self._ended: OrderedDict[str, str] = OrderedDict()  # ids of inline calls, with their thread

    async def call(self, thread: str, order: Order, options: Options, threshold: float | None) -> Answer:
        options = check_fields(options)
        limit = _threshold(threshold)
        parent = await parent_of(options, self._record)
        batch = self._batches.choose(thread, options.batch)
        runner = self._engine.runner(order.work.kind)
        task = self._submission.new_task(thread, order, options, runner, batch, parent, running=True)
        assignment = Assignment(task, order.target, order.args, order.kwargs, foreground=True)
        runner.check(task, assignment)
        await self._check_new(task, named=options.id is not None)
        key = (thread, task.tool_call_id or task.id)
        call = self._begin(assignment, runner)
        self._called.add(key)
        self._inline[task.id] = call
        self._record.calls[task.id] = task
        try:
            return await self._answer(call, limit)
        finally:
            del self._inline[task.id], self._record.calls[task.id]
            self._called.discard(key)
            if not call.recorded.done():
                self._remember(task)

    async def _check_new(self, task: Task, *, named: bool) -> None:
        """Before the work runs: a call that has its task already must not be executed again. An id that
        we have just made is nobody's."""
        call = task.tool_call_id
        known = await self._record.store.load(task.id) if named else None
        existing = None if call is None else await self._record.store.called(task.thread, call)
        if known is not None or task.id in self._inline:
            raise Duplicate.of_id(task.id)
        if call is not None and (existing is not None or (task.thread, call) in self._called):
            raise duplicate_call(call, existing or "still running in the foreground")

    def _begin(self, assignment: Assignment, runner: Runner) -> Foreground:
        began = self._record.clock.monotonic()
        call = Foreground(assignment, self._runs.new_context(assignment.task), began)
        if runner.abilities.adopt:
            call.lasting = cast("LastingRunner", runner)
            call.lasting.prepare(assignment.task)
        call.performing = asyncio.get_running_loop().create_task(self._perform(call))
        call.performing.add_done_callback(lambda done: call.leave_no_trace())
        return call

    async def _perform(self, call: Foreground) -> Report:
        CURRENT.set(call.context)
        return await self._engine.perform(call.assignment, call.context)

    def _remember(self, task: Task) -> None:
        self._ended[task.id] = task.thread
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)

    # -- waiting

    async def _answer(self, call: Foreground, threshold: float | None) -> Answer:
        timeout = call.task.run.timeout
        try:
            if threshold is not None and (timeout is None or threshold < timeout):
                await self._wait(call, threshold)
                if not call.performing.done() and not call.recorded.done():
                    await asyncio.wait([self._promotion(call)])
            await self._wait(call, timeout)
            if call.promotion is not None:  # it ended on its way to the ledger: the commit decides
                await asyncio.wait([call.promotion])
            if call.recorded.done():
                return Answer("background", task=call.task)
            if not call.performing.done():
                assert timeout is not None
                raise await self._time_out(call, timeout)
        except asyncio.CancelledError:
            # The caller is gone. What is a task goes on; what is not is stopped with it.
            call.left = True
            if call.promotion is None and not call.recorded.done():
                self._stop(call, "caller")
            raise
        return answer_of(call, call.performing.result(), self._record.clock.now(), self._elapsed(call))

    async def _wait(self, call: Foreground, seconds: float | None) -> None:
        """Until the work ends, or is a task, or has run for so long."""
        waits: set[asyncio.Future[Any]] = {call.performing, call.recorded, call.deaf}
        alarm = None
        if seconds is not None:
            over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            left = max(0.0, seconds - self._elapsed(call))
            alarm = self._record.clock.call_later(left, lambda: over.done() or over.set_result(None))
            waits.add(over)
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if alarm is not None:
                alarm.cancel()

    async def _time_out(self, call: Foreground, timeout: float) -> Exception:
        self._stop(call, TIMEOUT)
        call.context.on_deaf = lambda: call.deaf.done() or call.deaf.set_result(None)
        await self._wait(call, timeout + LOOK)
        if not call.context.is_deaf:
            await self._wait(call, timeout + self._settings.stop_deadline)
        return timed_out(call, timeout, self._record.clock.now(), self._elapsed(call))

    def _elapsed(self, call: Foreground) -> float:
        return self._record.clock.monotonic() - call.began

    # -- from inline to job

    def _promotion(self, call: Foreground) -> asyncio.Task[None]:
        """Records the running call as a task; the threshold and people who ask share one attempt. If
        it fails we go on waiting inline: the work is never executed again."""
        if call.promotion is not None:
            return call.promotion

        def adopt(assignment: Assignment) -> None:
            self._runs.adopt(assignment, call.context, call.performing, call.began)

        reserved = self._admission.reserve(call.assignment, adopt)
        call.keep(True)

        def decided(task: Task, done: bool) -> None:
            call.promotion = None
            reserved(task, done)
            call.keep(done)
            if done:
                call.recorded.set_result(None)
                return
            call.leave_no_trace()
            if call.left or self._admission.closed:
                self._stop(call, "caller" if call.left else "shutdown")

        promotion = asyncio.get_running_loop().create_task(self._record.create(call.task, decided))
        promotion.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was heard
        call.promotion = promotion
        return promotion

    async def promote(self, ref: str, thread: str | None) -> Task | None:
        """The call as a task; None where no call of this name runs inline, nor has."""
        ref = check_id(ref, "call")
        call = find(self._inline, ref, thread)
        if call is None:
            ended_in = self._ended.get(ref)
            if ended_in is not None and thread in (None, ended_in):
                raise too_late(ref)
            return None
        if call.recorded.done():
            return call.task
        if call.promotion is None and call.is_over:
            raise too_late(call.task.id)
        await asyncio.shield(self._promotion(call))
        return call.task

    def calls(self, thread: str | None) -> Sequence[Task]:
        """The calls that somebody waits for now, oldest first. None of it is on record."""
        return [call.seen() for call in self._inline.values() if thread in (None, call.task.thread)]

    # -- stopping

    async def close(self) -> None:
        """Calls that somebody still waits for are asked to stop, like everything that runs here. Work in its
        caller's own process goes on there.
        """
        for call in list(self._inline.values()):
            if call.promotion is not None or call.recorded.done():
                continue
            if call.task.executor and call.lasting and await call.lasting.detach(call.task):
                continue
            self._stop(call, "shutdown")

    def _stop(self, call: Foreground, by: str) -> None:
        call.stopped_by = call.stopped_by or by
        call.context.request_stop()
        self._engine.stop(call.task)


def _threshold(given: float | None) -> float | None:
    """Seconds; None and -1 wait for ever."""
    seconds = None if given is None else check(given)
    return None if seconds == UNBOUNDED else seconds
