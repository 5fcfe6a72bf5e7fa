"""Answers about one task in detail, and about an inbox: for people, and for the page that shows them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from meantime.kernel.lifecycle import Status
from meantime.kernel.notice_sources import SourceKind
from meantime.kernel.notices import NoticeState
from meantime.ports.task_details import MOST_CHILDREN, MOST_RUNS

from .row_schemas import Row
from .schemas import Answer, Count, Positive, Time, described
from .task_schemas import WireBatch, WireTask


class WireAction(Answer):
    """An action on a task, legal now or not."""

    name: Annotated[str, described("cancel, answer, resume, fork, send, promote, unpark, clear or purge.")]
    legal: bool
    reason: Annotated[str, described("Why it is not legal; empty if it is.")]
    destroys: Annotated[bool, described("It cannot be taken back: ask before.")]
    cli: Annotated[str, described("The command that does it; words in capitals are to be filled in.")]


class InboxNotice(Answer):
    """A notice, and what became of it."""

    id: str
    number: Annotated[Positive, described("Per thread, in the order of completion.")]
    task: str
    run: Count
    title: str
    outcome: Annotated[Status | None, described("How the run ended; null for other kinds of notices.")]
    state: NoticeState
    turn: Annotated[str | None, described("The turn that holds it, or has told it.")]
    turn_number: Annotated[
        int | None, described("That turn among those of the thread which were told something.")
    ]
    leased_at: Time
    told_at: Time
    attempts: Annotated[Count, described("How often it was leased to a turn.")]
    reason: Annotated[str | None, described("Why it is parked.")]
    ended_at: Annotated[Time, described("When the run ended, or the event came.")]
    kind: SourceKind
    text: Annotated[str, described("The words of a notice that is not an ending.")]


class Inbox(Answer):
    notices: Annotated[list[InboxNotice], Meta(max_length=200), described("Newest first.")]
    before: Annotated[int | None, described("Asks for the next page; null if this is the last.")]
    counts: Annotated[dict[str, Count], described("Notices by state.")]
    exact: Annotated[bool, described("False: only the newest 10,000 settled notices were counted.")]


class BudgetLine(Answer):
    name: Annotated[str, described("seconds; for an agent also tokens, cost, turns and toolCalls.")]
    used: float
    limit: float | None


class WireRelative(Answer):
    id: str
    title: str
    state: Status


class Family(Answer):
    parent: WireRelative | None
    children: Annotated[list[WireRelative], Meta(max_length=MOST_CHILDREN), described("The newest.")]
    more_children: bool
    batch: WireBatch | None


class WireUsual(Answer):
    """The usual duration of completed work like this."""

    ms: Count
    runs: Annotated[Positive, described("From how many runs it is known.")]
    ratio: Annotated[float | None, described("How many times as long this run took, or has taken so far.")]


class WireRules(Answer):
    """How requests of an agent are decided before a person is asked: its settings."""

    allow: Annotated[list[str], described("Patterns of tools that are allowed.")]
    deny: Annotated[list[str], described("Patterns of tools that are refused; they are looked at first.")]
    otherwise: Annotated[str, described("ask, allow or deny: for a tool that no pattern names.")]
    answer_within_ms: Annotated[
        Count | None, described("After it an open question counts as refused; null is never.")
    ]


class WireTaskDetail(
    WireTask,
    frozen=True,
    forbid_unknown_fields=True,
    kw_only=True,
    rename={"queue_position": "queuePosition"},
):
    """A task with what can be done with it, who was told, its spending and its family."""

    row: Annotated[Row, described("The task as a list shows it.")]
    actions: list[WireAction]
    delivery: Annotated[list[InboxNotice], Meta(max_length=MOST_RUNS), described("Per run, oldest first.")]
    budget: list[BudgetLine]
    family: Family
    usual: WireUsual | None
    rules: Annotated[WireRules | None, described("The rules of an agent; null if its settings are gone.")]
    queue_position: Annotated[int | None, described("1 is next.")]
