"""One call while somebody waits for it, and how its ending is told to whoever waits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from msgspec.structs import replace

from meantime.execution.containment import is_raisable
from meantime.execution.context import WorkContext
from meantime.kernel.change import ending
from meantime.kernel.errors import (
    Ambiguous,
    Closed,
    Refused,
    TaskCancelled,
    TaskFailed,
    TaskLost,
    TaskTimedOut,
)
from meantime.kernel.ids import bare
from meantime.kernel.lifecycle import after
from meantime.kernel.model import CancelRequest, Ending, Failed, Lost, Outcome, Task, TimedOut
from meantime.kernel.outcomes import TIMEOUT, Report, abandon, judge, sound
from meantime.ports.runner import Assignment, LastingRunner
from meantime.ports.tasks import Answer


class Foreground:
    """The work that runs, and what it would be as a task. It is not recorded until it is promoted."""

    def __init__(self, assignment: Assignment, context: WorkContext, began: float) -> None:
        self.assignment = assignment
        self.context = context
        self.began = began
        self.performing: asyncio.Task[Report]
        self.promotion: asyncio.Task[None] | None = None  # on its way to the ledger: the commit decides
        self.recorded = asyncio.get_running_loop().create_future()  # it is a task now
        self.deaf = asyncio.get_running_loop().create_future()  # its own process says that it will not stop
        self.left = False  # its caller is gone
        self.stopped_by = ""
        self.lasting: LastingRunner | None = None  # its runner, where its work could outlive us

    @property
    def task(self) -> Task:
        return self.assignment.task

    @property
    def is_over(self) -> bool:
        """Nothing is left to promote: it has ended, or is being stopped."""
        return self.performing.done() or bool(self.stopped_by)

    def keep(self, kept: bool) -> None:
        """A task may outlive us; a call that is not a task ends with its caller. Said before the
        commit: a task that would die with us is worse than a stray, which the next owner sweeps away."""
        if self.lasting is not None:
            self.lasting.keep(self.task, kept)

    def leave_no_trace(self) -> None:
        """It has ended, and never was a task."""
        over = self.performing.done() and self.promotion is None and not self.recorded.done()
        if self.lasting is not None and over:
            self.lasting.forget(self.task)

    def seen(self) -> Task:
        """As a snapshot, with what the work has said so far."""
        context, task = self.context, self.task
        if context.said is None:
            return task
        return replace(task, progress=context.said, run=replace(task.run, emitted=context.emitted))


def answer_of(call: Foreground, report: Report, now: float, elapsed: float) -> Answer:
    """The result, or an error. The tool's own exception is its own failure, a TimeoutError too."""
    if report.result is not None:
        answer = Answer("synchronous", report.result.value)
        known, emitted = sound(report), call.context.emitted
        answer.ending = Ending(call.task.id, emitted, known.final_message, known.terminate_reason)
        return answer
    if report.detached:
        raise Closed
    if report.exception is not None and not report.stopped and is_raisable(report.exception):
        raise report.exception
    task = _cancelled(call, now) if report.stopped else call.task
    outcome = judge(task, sound(report), call.context.emitted).outcome
    task = _ended(task, outcome, now, elapsed)
    match outcome:
        case Failed():
            raise TaskFailed(outcome.message, task)
        case TimedOut():
            raise TaskTimedOut(f"The call did not end within {outcome.seconds:g} s.", task)
        case Lost():
            raise TaskLost(outcome.reason or "How the call ended is not known.", task)
        case _:
            raise TaskCancelled("The call was stopped.", task)


def timed_out(call: Foreground, timeout: float, now: float, elapsed: float) -> TaskTimedOut:
    """The error of a call that was stopped by the clock, with what there was of a result."""
    task = _cancelled(call, now)
    done = call.performing.done()
    emitted = call.context.emitted
    outcome, late = (
        judge(task, sound(call.performing.result()), emitted) if done else (abandon(task, emitted), None)
    )
    task = replace(_ended(task, outcome, now, elapsed), late_result=late)
    return TaskTimedOut(f"The call did not end within {timeout:g} s.", task)


def _cancelled(call: Foreground, now: float) -> Task:
    reason = "the timeout" if call.stopped_by == TIMEOUT else ""
    run = replace(call.task.run, cancel=CancelRequest(call.stopped_by, now, reason))
    return replace(call.task, run=run)


def _ended(task: Task, outcome: Outcome, now: float, elapsed: float) -> Task:
    status = after(task.status, ending(outcome))
    assert status is not None, "a running call can end in every way"
    run = replace(task.run, ended_at=now, duration=elapsed)
    return replace(task, status=status, outcome=outcome, run=run, updated_at=now)


def find(calls: Mapping[str, Foreground], ref: str, thread: str | None) -> Foreground | None:
    """By its id, or a unique prefix of one; another thread's call is not found."""
    own = {id: call for id, call in calls.items() if thread in (None, call.task.thread)}
    if ref in own:
        return own[ref]
    found = [id for id in own if bare(id).startswith(bare(ref))]
    if len(found) > 1:
        raise Ambiguous(ref, found)
    return own[found[0]] if found else None


def is_a_task(task: Task) -> Refused:
    return Refused(
        f"{task.id} is a task already; it is {task.status}.",
        code="already_a_task",
        hint="Wait for it, or read its output, as with every task.",
    )


def too_late(id: str) -> Refused:
    return Refused(
        f"The call {id} has ended, or is being stopped; there is nothing to send to the background.",
        code="already_ended",
        hint="Its caller has its answer.",
    )
