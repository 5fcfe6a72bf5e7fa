"""The course of a task: where its time went, and what its agent said."""

from __future__ import annotations

from collections.abc import Sequence

from meantime.kernel.durations import iso
from meantime.kernel.errors import NotFound, Refused
from meantime.kernel.lines import Kind, Line, LinePage, PlacedLine
from meantime.kernel.model import Task
from meantime.kernel.payloads import as_text
from meantime.kernel.timeline import Span, key_argument, timeline

from .dependencies import Dependencies
from .detail_encoding import visible
from .routing import RequestContext
from .task_lookup import find
from .timeline_schemas import (
    MessagePage,
    MessageRange,
    TimelineAnswer,
    TimelineRange,
    TimelineTotals,
    WireMessageLine,
    WireSpan,
)

WINDOW = 8 << 20  # bytes of a conversation's end that a timeline is made from
CHILD_WINDOW = 1 << 20
FOLLOWED = 10  # children whose own spans are shown: the newest
PAGE = 1 << 20  # bytes of a conversation that are read for one page of messages
LOOK_BACK = 1 << 20  # bytes before the page, in which the calls of its results are looked for
TEXT = 20_000  # characters of a message, or of a result
_NO_LINES = LinePage((), 0, 0, 0)


async def get_timeline(deps: Dependencies, asked: RequestContext[TimelineRange, None]) -> TimelineAnswer:
    tasks, now = deps.tasks, deps.clock.now()
    task = await find(tasks, asked.subject, asked.thread)
    runs = await tasks.runs_of(task.id, None)
    said = await _said(deps, task, -WINDOW, WINDOW)
    found = timeline(runs, said.lines, await _children(deps, task, asked.thread), now)
    spans, after = found.spans, asked.params.after
    if after is not None:
        spans = tuple(span for span in spans if span.end is None or span.seq >= after or not span.seq)
    older = _unread_calls(task, said, found.spans) if said.begin else 0
    totals = found.totals
    return TimelineAnswer(
        started_at=iso(found.started_at),
        ended_at=iso(found.ended_at),
        now=iso(now),
        spans=[_span(span, found.started_at) for span in spans],
        folded=found.folded + older,
        totals=TimelineTotals(_ms(totals.model), _ms(totals.tool), _ms(totals.wait), _ms(totals.queue)),
        seq=said.total,
    )


async def _said(deps: Dependencies, task: Task, offset: int, most: int) -> LinePage:
    try:
        return await deps.tasks.line_page(task.id, None, offset=offset, most=most)
    except Refused:
        return _NO_LINES  # it holds no conversation


async def _children(
    deps: Dependencies, task: Task, thread: str | None
) -> list[tuple[Task, Sequence[PlacedLine]]]:
    """Each with its own lines, as far as they are shown."""
    listed = visible((await deps.tasks.details(task.id, None)).children, thread)
    found: list[tuple[Task, Sequence[PlacedLine]]] = []
    for place, one in enumerate(listed):
        try:
            child = await deps.tasks.get(one.id, None)
        except NotFound:
            continue  # purged meanwhile
        followed = place >= len(listed) - FOLLOWED
        said = await _said(deps, child, -CHILD_WINDOW, CHILD_WINDOW) if followed else _NO_LINES
        found.append((child, [line for line in said.lines if line.line.run == child.run.number]))
    return found


def _unread_calls(task: Task, said: LinePage, spans: Sequence[Span]) -> int:
    """Calls of the current run before the part of its conversation that was read."""
    calls = 0 if task.progress is None else task.progress.calls
    read = sum(span.kind == "tool" and span.run == task.run.number and not span.task for span in spans)
    return max(0, calls - read)


def _span(span: Span, began: float) -> WireSpan:
    return WireSpan(
        id=span.id,
        parent=span.parent,
        kind=span.kind,
        name=span.name,
        detail=span.detail,
        start_ms=round((span.start - began) * 1_000),
        end_ms=None if span.end is None else round((span.end - began) * 1_000),
        error=span.error,
        note=span.note,
        task=span.task,
        run=span.run,
    )


def _ms(seconds: float) -> int:
    return max(0, round(seconds * 1_000))


async def get_messages(deps: Dependencies, asked: RequestContext[MessageRange, None]) -> MessagePage:
    task = await find(deps.tasks, asked.subject, asked.thread)
    after, limit = asked.params.after or 0, asked.params.limit
    page = await _said(deps, task, after, PAGE)
    lines = page.lines[:limit]
    next = page.lines[limit].place if len(page.lines) > limit else page.next
    before: Sequence[PlacedLine] = ()
    if after and any(one.line.kind is Kind.RESULT for one in lines):
        earlier = await _said(deps, task, max(0, after - LOOK_BACK), LOOK_BACK)
        before = [one for one in earlier.lines if one.place < after and one.line.kind is Kind.CALL]
    return MessagePage(messages=paired(before, lines), next=next, more=next < page.total)


def paired(before: Sequence[PlacedLine], lines: Sequence[PlacedLine]) -> list[WireMessageLine]:
    """The lines as messages, each call with its result. `before` are older calls, which come again if their
    result is among the lines."""
    calls = {(one.line.run, one.line.call): _message(one) for one in before if one.line.call}
    found: dict[str, WireMessageLine] = {}
    for one in lines:
        line = one.line
        call = calls.get((line.run, line.call)) if line.kind is Kind.RESULT and line.call else None
        if call is None:
            message = found[str(one.place)] = _message(one)
            if line.kind is Kind.CALL and line.call:
                calls[line.run, line.call] = message
            continue
        call.result, cut = _cut(line.text)
        call.error, call.ended_at = line.failed, iso(line.at)
        call.truncated = call.truncated or cut
        found.pop(call.id, None)
        found[call.id] = call
    return sorted(found.values(), key=lambda message: int(message.id))


def _message(one: PlacedLine) -> WireMessageLine:
    line = one.line
    text, cut = _cut(line.text)
    arguments, too_long = _arguments(line)
    return WireMessageLine(
        id=str(one.place),
        role=line.role,
        kind=line.kind,
        text=text,
        truncated=cut or too_long,
        at=iso(line.at),
        run=line.run,
        name=line.tool or None,
        detail=key_argument(line.arguments) or None if line.kind is Kind.CALL else None,
        arguments=arguments,
        result=None,
        error=line.failed,
        ended_at=None,
    )


def _arguments(line: Line) -> tuple[object, bool]:
    text = "" if line.arguments is None else as_text(line.arguments)
    return (line.arguments, False) if len(text) <= TEXT else (text[:TEXT], True)


def _cut(text: str) -> tuple[str, bool]:
    return (text, False) if len(text) <= TEXT else (text[:TEXT], True)
