"""Answers about the course of a task: its timeline, and the messages of an agent."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from meantime.kernel.lines import ROLES, Kind
from meantime.kernel.model import Json
from meantime.kernel.timeline import MOST_SPANS

from .schemas import Answer, Count, Params, Positive, Time, described, one_of
from .task_requests import MOST_OFFSET

MOST_MESSAGES = 500  # of one page


class TimelineRange(Params, frozen=True):
    after: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_OFFSET)] | None,
        described("The `seq` of the last answer: only spans that changed since, and open ones."),
    ] = None


class MessageRange(Params, frozen=True):
    after: Annotated[
        Annotated[int, Meta(ge=0, le=MOST_OFFSET)] | None,
        described("The `next` of the last page; absent is the beginning."),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=MOST_MESSAGES)] = 200


class WireSpan(Answer):
    """A stretch of time on the scale of its timeline."""

    id: str
    parent: str | None
    kind: Annotated[str, one_of("queue", "turn", "model", "tool", "wait", "child")]
    name: str
    detail: Annotated[str, described("For a call, the argument that says most.")]
    start_ms: int
    end_ms: Annotated[int | None, described("Null while it goes on.")]
    error: bool
    note: Annotated[str, described("How it ended.")]
    task: Annotated[str | None, described("For a child, its id.")]
    run: Positive


class TimelineTotals(Answer):
    """Milliseconds by what was done in them; none counts twice."""

    model_ms: Count
    tool_ms: Count
    wait_ms: Count
    queue_ms: Count


class TimelineAnswer(Answer):
    started_at: Time
    ended_at: Time
    now: Time
    spans: Annotated[list[WireSpan], Meta(max_length=MOST_SPANS)]
    folded: Annotated[Count, described("Older spans that are left out, as far as they are known.")]
    totals: TimelineTotals
    seq: Annotated[Count, described("For `after`.")]


class WireMessageLine(Answer):
    """One message of an agent's conversation. A call comes again, under its id, once it has its result."""

    id: str
    role: Annotated[str, one_of(*sorted(ROLES))]
    kind: Annotated[str, one_of(*Kind)]
    text: str
    truncated: Annotated[bool, described("The text, the arguments or the result are cut.")]
    at: Time
    run: Positive
    name: Annotated[str | None, described("The name of the tool.")]
    detail: Annotated[str | None, described("The argument of a call that says most.")]
    arguments: Json
    result: Annotated[str | None, described("The result of a call; null until there is one.")]
    error: Annotated[bool, described("The call failed.")]
    ended_at: Time


class MessagePage(Answer):
    messages: Annotated[list[WireMessageLine], described("Oldest first.")]
    next: Annotated[Count, described("For `after`.")]
    more: Annotated[bool, described("There are more already.")]
