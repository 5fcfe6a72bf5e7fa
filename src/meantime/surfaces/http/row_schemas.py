"""Answers for a page that shows many tasks at once: rows, and everything in a few numbers."""

from __future__ import annotations

from typing import Annotated

from meantime.kernel.notices import NoticeState

from .schemas import Answer, Count, Time, described, one_of


class RowQuestion(Answer):
    id: str
    kind: str
    text: Annotated[str, described("In one line, cut to 200 characters; the task has all of it.")]
    deadline_at: Time


class RowDelivery(Answer):
    state: Annotated[str, one_of(*NoticeState)]
    notice: Annotated[str, described("Its id, as a turn acknowledges it.")]
    number: Annotated[int | None, described("The completion number in its conversation.")]
    turn: Annotated[str | None, described("The turn that holds it, or that told it.")]
    turn_number: Annotated[
        int | None, described("That turn among those of its conversation that told something.")
    ]
    at: Annotated[Time, described("When it was told; before that, when the run ended.")]
    reason: Annotated[str | None, described("Why it is parked.")]


class Row(Answer):
    """A task as a list shows it. Every text is short."""

    id: str
    short_id: str
    title: str
    kind: str
    agent: Annotated[str, described("The agent's name; empty for other work.")]
    state: str
    run: Count
    thread: str
    batch: str | None
    parent: str | None
    children: Annotated[Count, described("Tasks that it has started itself; counted up to 1000.")]
    now: Annotated[str, described("One line: what it does or said last, what it asks, or how it ended.")]
    percent: float | None
    created_at: Time
    started_at: Time
    ended_at: Time
    last_event_at: Annotated[Time, described("A change, its progress, or its output.")]
    silent_after_ms: Annotated[
        Count, described("A running task without an event for so long is silent; 0: never.")
    ]
    timeout_at: Time
    usual_ms: Annotated[int | None, described("How long such work usually takes; null if not known yet.")]
    usual_runs: Annotated[Count, described("How many runs `usualMs` is learned from.")]
    queue_position: Annotated[int | None, described("1 is next; null far behind, and if it is not queued.")]
    question: RowQuestion | None
    exit_code: int | None
    delivery: Annotated[RowDelivery | None, described("Null while it has not ended.")]
    notify: Annotated[bool, described("False: its ending is recorded, and nobody is told.")]


class RowPage(Answer):
    rows: list[Row]
    total: Count
    total_exact: Annotated[bool, described("False: there are at least so many.")]
    cursor: Annotated[str | None, described("For the page behind this one; null if there is none.")]


class Completion(Answer):
    text: Annotated[str, described("In place of the last word of the search.")]
    label: Annotated[str, described("More about it; may be empty.")]
    kind: Annotated[str, described("The qualifier that it is a value of, or `qualifier`.")]


class Completions(Answer):
    items: list[Completion]


class HourFailures(Answer):
    failed: Count
    total: Count


class LateNotices(Answer):
    late_or_parked: Annotated[Count, described("Parked, or not told for a minute. Counted up to 1000.")]
    total: Count


class SlotCounts(Answer):
    used: Count
    total: Annotated[int, described("-1 is no limit.")]
    queued: Count


class ThreadRow(Answer):
    """A conversation. Its notices are counted up to 1000."""

    id: str
    active: Count
    unread: Count
    leased: Count
    parked: Count
    waiting: Annotated[Count, described("Tasks that wait for an answer.")]
    last_event_at: Time


class BatchRow(Answer):
    id: str
    thread: str
    done: Count
    failed: Count
    active: Count
    total: Count


class OverviewAnswer(Answer):
    """Everything in a few numbers. It costs the same for any history."""

    counts: Annotated[
        dict[str, Count], described("Tasks that are not cleared: `all`, and each status by its name.")
    ]
    running60: Annotated[
        list[Count],
        described("The most that ran at once in each of the last 60 minutes; empty for a thread's token."),
    ]
    p50_ms: int | None
    p95_ms: int | None
    failed_last_hour: HourFailures
    late: LateNotices
    slots: SlotCounts
    threads: Annotated[list[ThreadRow], described("At most 50; where something happened last comes first.")]
    batches: Annotated[list[BatchRow], described("At most 20; those with something active come first.")]
