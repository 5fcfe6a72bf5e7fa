"""The one translator from the kernel's tasks and numbers to the rows and the overview of a page."""

from __future__ import annotations

from collections.abc import Sequence

from meantime.kernel.durations import iso
from meantime.kernel.ids import display
from meantime.kernel.model import Task
from meantime.kernel.notice_sources import notice_id
from meantime.kernel.overview import Overview
from meantime.kernel.payloads import one_line
from meantime.kernel.row_facts import LINE, MOST_FACTS, TITLE, RowFacts, last_event_at, now_line, silent_after
from meantime.ports.tasks import Tasks

from .row_schemas import (
    BatchRow,
    HourFailures,
    LateNotices,
    OverviewAnswer,
    Row,
    RowDelivery,
    RowQuestion,
    SlotCounts,
    ThreadRow,
)
from .task_encoding import exit_code, milliseconds


async def rows_of(tasks: Tasks, found: Sequence[Task]) -> list[Row]:
    """The rows of these tasks, in their order: one question for all of them."""
    rows: list[Row] = []
    for first in range(0, len(found), MOST_FACTS):
        part = found[first : first + MOST_FACTS]
        facts = await tasks.row_facts([task.id for task in part])
        rows += [wire_row(task, about) for task, about in zip(part, facts, strict=True)]
    return rows


def wire_row(task: Task, facts: RowFacts) -> Row:
    run, progress = task.run, task.progress
    return Row(
        id=task.id,
        short_id=display(task.id),
        title=one_line(task.title, TITLE),
        kind=task.work.kind,
        agent=task.agent,
        state=task.status,
        run=run.number,
        thread=task.thread,
        batch=task.batch or None,
        parent=task.parent,
        children=facts.children,
        now=now_line(task, facts),
        percent=progress.percent if progress is not None else None,
        created_at=iso(task.created_at),
        started_at=iso(run.started_at),
        ended_at=iso(run.ended_at),
        last_event_at=iso(last_event_at(task, facts)),
        silent_after_ms=milliseconds(silent_after(task, facts)) or 0,
        timeout_at=_timeout_at(task),
        usual_ms=facts.usual_ms,
        usual_runs=facts.usual_runs,
        queue_position=facts.position,
        question=_question(task),
        exit_code=exit_code(task),
        delivery=_delivery(task, facts),
        notify=task.notify,
    )


def _timeout_at(task: Task) -> str | None:
    run = task.run
    if task.ended or run.started_at is None or run.timeout is None:
        return None
    return iso(run.started_at + run.timeout)


def _question(task: Task) -> RowQuestion | None:
    asked = task.question
    if asked is None:
        return None
    return RowQuestion(asked.id, asked.kind, one_line(asked.text[: 4 * LINE], LINE), iso(asked.deadline_at))


def _delivery(task: Task, facts: RowFacts) -> RowDelivery | None:
    known = facts.delivery
    if known is None or not task.ended:
        return None
    return RowDelivery(
        known.state,
        notice_id(task.id, task.run.number),
        known.number,
        known.turn,
        known.turn_number,
        iso(known.at),
        known.reason,
    )


def wire_overview(found: Overview) -> OverviewAnswer:
    return OverviewAnswer(
        counts={"all": sum(found.counts.values()), **found.counts},
        running60=list(found.running),
        p50_ms=milliseconds(found.p50),
        p95_ms=milliseconds(found.p95),
        failed_last_hour=HourFailures(found.failed, found.ended),
        late=LateNotices(found.late, found.notices),
        slots=SlotCounts(found.slots_used, found.slots_total, found.queued),
        threads=[
            ThreadRow(
                one.id, one.active, one.unread, one.leased, one.parked, one.waiting, iso(one.last_event_at)
            )
            for one in found.threads
        ],
        batches=[
            BatchRow(one.id, one.thread, one.ended - one.failed, one.failed, one.total - one.ended, one.total)
            for one in found.batches
        ],
    )
