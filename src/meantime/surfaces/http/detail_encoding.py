"""The details of a task and the notices of an inbox, as they are on the wire."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import structs

from meantime.kernel.durations import iso
from meantime.kernel.inbox_page import InboxEntry, InboxPage
from meantime.kernel.questions import PermissionRules
from meantime.ports.task_details import Relative, TaskDetails

from .detail_schemas import (
    BudgetLine,
    Family,
    Inbox,
    InboxNotice,
    WireAction,
    WireRelative,
    WireRules,
    WireTaskDetail,
    WireUsual,
)
from .notice_encoding import wire_batch
from .row_schemas import Row
from .task_encoding import milliseconds, wire_task

_CAMEL = {"tool_calls": "toolCalls"}


def wire_details(found: TaskDetails, row: Row, thread: str | None) -> WireTaskDetail:
    """`thread` is all that the caller may see: relatives elsewhere are left out."""
    return WireTaskDetail(
        **structs.asdict(wire_task(found.task, whole=True)),
        row=row,
        actions=[WireAction(**structs.asdict(action)) for action in found.actions],
        delivery=[wire_entry(entry) for entry in found.deliveries],
        budget=[BudgetLine(_CAMEL.get(one.name, one.name), one.used, one.limit) for one in found.budget],
        family=Family(
            parent=next(map(_relative, visible([found.parent], thread)), None),
            children=[_relative(child) for child in visible(found.children, thread)],
            more_children=found.more_children,
            batch=wire_batch(found.batch) if found.batch else None,
        ),
        usual=_usual(found),
        rules=None if found.rules is None else _rules(found.rules),
        queue_position=found.position,
    )


def visible(relatives: Iterable[Relative | None], thread: str | None) -> list[Relative]:
    return [one for one in relatives if one is not None and thread in (None, one.thread)]


def _usual(found: TaskDetails) -> WireUsual | None:
    """The time of the budget is how long this run has taken."""
    if found.usual is None:
        return None
    taken = next(one.used for one in found.budget if one.name == "seconds")
    ratio = found.usual.ratio(taken)
    return WireUsual(
        ms=milliseconds(found.usual.seconds) or 0,
        runs=found.usual.runs,
        ratio=None if ratio is None else round(ratio, 2),
    )


def _rules(found: PermissionRules) -> WireRules:
    patience = found.answer_within
    return WireRules(
        list(found.allow),
        list(found.deny),
        found.otherwise,
        milliseconds(patience) if patience >= 0 else None,
    )


def _relative(task: Relative) -> WireRelative:
    return WireRelative(task.id, task.title, task.status)


def wire_entry(entry: InboxEntry) -> InboxNotice:
    return InboxNotice(
        id=entry.id,
        number=entry.number,
        task=entry.task,
        run=entry.run,
        title=entry.title,
        outcome=entry.status,
        state=entry.state,
        turn=entry.turn,
        turn_number=entry.turn_number,
        leased_at=iso(entry.leased_at),
        told_at=iso(entry.told_at),
        attempts=entry.attempts,
        reason=entry.reason or None,
        ended_at=iso(entry.ended_at),
        kind=entry.kind,
        text=entry.text,
    )


def wire_inbox(page: InboxPage) -> Inbox:
    return Inbox(
        notices=[wire_entry(entry) for entry in page.entries],
        before=page.before,
        counts=page.counts,
        exact=page.exact,
    )
