"""run: perform one run and record how it ended: start the clock, perform, name the outcome, record."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from meantime.execution.context import LOOK, NO_TASK, UNFOLLOWED, WorkContext
from meantime.kernel.bounds import bounded, filed, unfiled
from meantime.kernel.change import Disposition, Facts, ending
from meantime.kernel.errors import Closed, MeantimeError, NotFound, Refused
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.limits import NO_LIMIT
from meantime.kernel.model import Failed, Lost, Outcome, Run, Task, fence_of
from meantime.kernel.outcomes import TIMEOUT, Report, abandon, is_unheard, judge, sound
from meantime.kernel.payloads import short
from meantime.kernel.questions import Question, Reply
from meantime.ports.clock import Alarm
from meantime.ports.engine import Engine
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import CURRENT, Assignment, LastingRunner

from .open_questions import OpenQuestions
from .record import Moved, Record
from .run_notices import RunNotices
from .settings import Settings

UNTOLD = "Its worker had not begun it when the owner of the ledger ended, and what it needs was not stored."


class Live:
    """A run of this process, from its launch until its report is recorded."""

    __slots__ = ("alarms", "began", "context", "fence", "flushing", "is_aged", "runner")

    def __init__(self, context: WorkContext, fence: tuple[int, int], began: float) -> None:
        self.context = context
        self.fence = fence
        self.began = began
        self.alarms: tuple[Alarm, ...] = ()
        self.flushing = False
        self.is_aged = True  # False: when it began is not known yet
        self.runner: asyncio.Task[None] | None = None

    def quiet(self) -> None:
        for alarm in self.alarms:
            alarm.cancel()
        self.alarms = ()


class _RunReports:
    """The questions of one run, and what it tells its thread."""

    __slots__ = ("_fence", "_runs", "_task")

    def __init__(self, runs: Runs, task: str, fence: tuple[int, int]) -> None:
        self._runs = runs
        self._task = task
        self._fence = fence

    def ask(self, question: Question) -> Awaitable[Reply]:
        return self._runs.asking.ask(self._task, self._fence, question)

    def withdraw(self, question: str, reply: Reply | None) -> None:
        self._runs.beside(self._runs.asking.withdraw(self._task, question, reply))

    async def notify(self, text: str) -> str:
        return await self._runs.notify(self._task, self._fence, text)

    async def notify_once(self, number: int, text: str) -> str:
        return await self._runs.notify(self._task, self._fence, text, number)


class Runs:
    def __init__(
        self,
        record: Record,
        engine: Engine,
        settings: Settings,
        asking: OpenQuestions,
        notices: RunNotices,
        requeue: Callable[[Assignment], None],
    ) -> None:
        self._record = record
        self._engine = engine
        self.asking = asking
        self._notices = notices
        self._settings = settings
        self.live: dict[str, Live] = {}
        self._side = BackgroundTasks()  # short work of our own: stops, flushes
        self._closed = False
        self._requeue = requeue
        self._on_progress, self._on_age = self._flush_soon, self._aged  # bound once, not once for each run

    def launch(self, assignment: Assignment) -> None:
        """Called once the task is durable and has its slot."""
        context = self.new_context(assignment.task)
        age = self._lasting(assignment.task).age(assignment.task) if assignment.again else 0.0
        if assignment.again:
            context.said, context.emitted = assignment.task.progress, assignment.task.run.emitted
        live = Live(context, fence_of(assignment.task.run), self._record.clock.monotonic() - (age or 0.0))
        live.is_aged = age is not None
        self._begin(assignment, live, self._run(assignment, live))

    def adopt(
        self, assignment: Assignment, context: WorkContext, report: Awaitable[Report], began: float
    ) -> None:
        """A call that runs already and has just become a task."""
        live = Live(context, fence_of(assignment.task.run), began)
        self._begin(assignment, live, self._finish_with(assignment.task.id, live, report))
        if context.session is not None:  # said while it was no record yet
            self._flush_soon(assignment.task.id, True)

    def new_context(self, task: Task) -> WorkContext:
        loop = asyncio.get_running_loop()
        asks = _RunReports(self, task.id, fence_of(task.run))
        return WorkContext(task, loop, self._record.clock.now, self._on_progress, asks, self._on_age)

    async def notify(self, id: str, fence: tuple[int, int], text: str, number: int = 0) -> str:
        """A run that was given up tells nothing more."""
        task = self._record.live.get(id)
        if task is None or fence_of(task.run) != fence:
            raise Refused(NO_TASK, code="cannot_notify", hint=UNFOLLOWED)
        return await self._notices.notify(task, text, number)

    def _begin(self, assignment: Assignment, live: Live, coroutine: Any) -> None:
        task = assignment.task
        self.live[task.id] = live
        self._arm(task, live)
        live.runner = asyncio.get_running_loop().create_task(coroutine, context=assignment.context)

    def _arm(self, task: Task, live: Live) -> None:
        if task.run.timeout is None:
            return
        left = max(0.0, task.run.timeout - (self._record.clock.monotonic() - live.began))
        timing_out = partial(self._time_out, task.id, live)
        live.quiet()
        live.alarms = (self._record.clock.call_later(left, lambda: self.beside(timing_out())),)

    def _aged(self, id: str, seconds: float) -> None:
        """Its own process says how long it has been running. Reports come a little late, so the earliest
        beginning is the truest.
        """
        live, task = self.live.get(id), self._record.live.get(id)
        if live is None:
            return
        began = self._record.clock.monotonic() - seconds
        if live.is_aged and began >= live.began:
            return
        live.began, live.is_aged = min(began, live.began), True
        if task is not None and task.status is not Status.CANCELLING:
            self._arm(task, live)

    # -- the pipeline

    async def _run(self, assignment: Assignment, live: Live) -> None:
        CURRENT.set(live.context)
        report = await self._engine.perform(assignment, live.context)
        if report.unbegun:
            report = await self._offer_again(assignment, live)
        await self._finish(assignment.task.id, live, report)

    async def _offer_again(self, assignment: Assignment, live: Live) -> Report:
        """A worker claimed it and never began it, so it can be begun elsewhere, whatever it is. A later owner
        does not have the values of its variables."""
        task = self._record.live.get(assignment.task.id)
        if task is None or task.status is Status.CANCELLING:
            return Report(stopped=True)
        if assignment.again and not self._engine.runner(task.work.kind).can_run(task):
            return Report(lost=UNTOLD)
        live.quiet()
        self.live.pop(task.id, None)
        run = replace(task.run, attempt=task.run.attempt + 1, started_at=None, claim=None)
        if await self._queue_again(replace(assignment, again=False), run):
            return Report(detached=True)
        return Report(stopped=True)  # it was cancelled meanwhile

    async def _queue_again(self, assignment: Assignment, run: Run) -> bool:
        moved = await self._record.insist(assignment.task.id, Move.RETRY, Facts(next_run=run))
        if moved.disposition is Disposition.APPLIED:
            self._requeue(replace(assignment, task=moved.task))
        return moved.disposition is Disposition.APPLIED

    async def _finish_with(self, id: str, live: Live, report: Awaitable[Report]) -> None:
        await self._finish(id, live, await report)

    async def _finish(self, id: str, live: Live, report: Report) -> None:
        """A run ends whatever its runner reports: a report that cannot be recorded is a failure."""
        elapsed = self._record.clock.monotonic() - live.began if live.is_aged else None
        live.quiet()
        if report.detached:  # it goes on, and the next owner adopts it
            if self.live.get(id) is live:
                del self.live[id]
            return
        try:
            await self._record_ending(id, live, report, elapsed)
        except (Closed, NotFound):
            pass  # what was left behind may end after us, or after its task was purged
        except Exception as problem:
            text = f"The run ended, but its report could not be recorded: {type(problem).__name__}."
            failed = Report(error=Failed(text, "report_not_recorded"))
            with suppress(MeantimeError):
                await self._record_ending(id, live, failed, elapsed)
        if self.live.get(id) is live:
            del self.live[id]

    async def _record_ending(self, id: str, live: Live, report: Report, elapsed: float | None) -> None:
        task = self._record.live.get(id)
        if task is None:  # left behind by a cancel that it ignored: what it says now comes late
            late = short(report.result.value) if report.result else None
            await self._record.insist(id, Move.COMPLETE, Facts(run=live.fence, late=late))
            return
        verdict = judge(task, sound(report), live.context.emitted)
        if isinstance(verdict.outcome, Lost) and task.retry == "idempotent" and await self._retry(task):
            return
        outcome = await self._spill(task, verdict.outcome)
        facts = Facts(
            outcome=outcome,
            elapsed=elapsed,
            run=live.fence,
            late=short(verdict.late),
            progress=live.context.said,
            session=report.session or live.context.session,
        )
        await self._record.insist(id, ending(outcome), facts)

    async def keep_late(self, id: str, executor: str, fence: tuple[int, int], report: Report) -> None:
        """A connected process's report about a run that was given up: the ending stays as it is."""
        task = await self._record.current(id)
        if report.result is not None and task.executor == executor and is_unheard(task.outcome):
            late = short(report.result.value)
            await self._record.insist(id, Move.COMPLETE, Facts(run=fence, late=late))

    async def _retry(self, task: Task) -> bool:
        """Work that outlives us was lost, and may be run again: it goes back into the queue."""
        runner = self._engine.runner(task.work.kind)
        if task.status is Status.CANCELLING or not runner.abilities.adopt or not runner.can_run(task):
            return False
        losses = task.run.losses + 1
        most = self._settings.worker_attempts
        if task.place and losses >= most != NO_LIMIT:
            return False  # it may be what ends them
        run = replace(
            task.run,
            attempt=task.run.attempt + 1,
            started_at=None,
            cancel=None,
            claim=None,
            losses=losses if task.place else 0,
        )
        self._lasting(task).prepare(replace(task, run=run))
        return await self._queue_again(Assignment(task), run)

    def _lasting(self, task: Task) -> LastingRunner:
        return cast("LastingRunner", self._engine.runner(task.work.kind))

    async def _spill(self, task: Task, outcome: Outcome) -> Outcome:
        """Over the limits the whole payload goes to a file, before the ending that points to it."""
        named = self._settings.inline_by_name.get(task.work.name)
        over = bounded(outcome, task.inline or named or self._settings.inline)
        if over.whole is None:
            return over.outcome
        try:
            path = await self._record.store.spill(over.whole.encode())
        except OSError as problem:
            return unfiled(over, str(problem))
        return filed(over, path)

    # -- stopping

    async def detach(self, task: Task) -> bool:
        """Whether the run continues without us."""
        if task.place and task.id not in self.live:
            return True  # nobody here follows it: it is at its worker
        if not self._engine.runner(task.work.kind).abilities.adopt or task.status is Status.CANCELLING:
            return False
        return await self._lasting(task).detach(task)

    def stop(self, task: Task) -> None:
        """The cancel is durable: ask, ask again after the grace, and leave it behind at the deadline."""
        live = self.live.get(task.id)
        if live is None:
            return
        live.quiet()
        self._request_stop(task, live)
        clock, settings = self._record.clock, self._settings
        live.alarms = (
            clock.call_later(settings.stop_grace, lambda: self._request_stop(task, live)),
            clock.call_later(settings.stop_deadline, lambda: self.beside(self._abandon(task.id, live))),
        )

    def _request_stop(self, task: Task, live: Live) -> None:
        if self.live.get(task.id) is live:
            live.context.request_stop()
            self._engine.stop(task)

    async def _abandon(self, id: str, live: Live) -> Moved | None:
        task = self._record.live.get(id)
        if self.live.get(id) is not live or task is None or fence_of(task.run) != live.fence:
            return None
        outcome = abandon(task, live.context.emitted)
        return await self._record.insist(
            id, ending(outcome), Facts(outcome=outcome, run=live.fence, progress=live.context.said)
        )

    async def _time_out(self, id: str, live: Live) -> None:
        if self.live.get(id) is not live:
            return
        facts = Facts(by=TIMEOUT, reason="the timeout", run=live.fence)
        moved = await self._record.insist(id, Move.CANCEL, facts)
        if not moved.task.ended:
            self.stop(moved.task)
            hears = self._record.clock.call_later(LOOK, lambda: self.beside(self._abandon_deaf(id, live)))
            live.alarms = (*live.alarms, hears)
            # Work of a connected process is asked there, and found to be deaf a little later than here.
            live.context.on_deaf = lambda: self.beside(self._abandon_deaf(id, live))

    async def _abandon_deaf(self, id: str, live: Live) -> None:
        """A thread cannot be interrupted. One that never asked whether to stop is not waited for."""
        if live.context.is_deaf:
            await self._abandon(id, live)

    # -- progress

    def _flush_soon(self, id: str, now: bool) -> None:
        live = self.live.get(id)
        if live is None:
            return
        if now:
            self.beside(self._flush(id, live))
            return
        if live.flushing:
            return
        live.flushing = True
        wait = self._settings.progress_every
        self._record.clock.call_later(wait, lambda: self.beside(self._flush(id, live)))

    async def _flush(self, id: str, live: Live) -> None:
        live.flushing = False
        if id not in self._record.live:
            return
        context = live.context
        warned, context.warned = context.warned, 0

        def said(task: Task) -> dict[str, Any] | None:
            if task.ended or fence_of(task.run) != live.fence:
                return None
            run = replace(task.run, emitted=context.emitted) if context.emitted else task.run
            return {"progress": context.said, "run": run, "session": context.session}

        with suppress(MeantimeError):  # progress is worth no trouble: the next one, or the ending, has it
            await self._record.amend(id, said, event="warned" if warned else "progress")

    def seen(self, task: Task) -> Task:
        """The task with what its work has said since the last flush."""
        live = self.live.get(task.id)
        if live is None or task.ended or live.fence != fence_of(task.run):
            return task
        context = live.context
        if context.said is None:
            return task
        run = replace(task.run, emitted=context.emitted) if context.emitted else task.run
        return replace(task, progress=context.said, run=run)

    def beside(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        if self._closed:  # an alarm that rang late: nobody would see it through
            coroutine.close()
            return
        self._side.start(coroutine)

    async def close(self) -> None:
        """Every run has ended or was left behind; what they still wrote beside is dropped."""
        self._closed = True
        await self._side.close()
