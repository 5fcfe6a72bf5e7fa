"""The routes of reminders: what they take and answer, and their handlers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from meantime.kernel.due_times import delay_of, time_of
from meantime.kernel.durations import iso
from meantime.kernel.schedules import MOST_TEXT, Schedule

from .dependencies import Dependencies
from .routing import THREAD, Access, AnyRoute, RequestContext, Route, Subject
from .schemas import Answer, Body, Count, Id, Params, Time, described, documented, one_of
from .task_lookup import own_thread
from .task_requests import MOST_OFFSET
from .thread_requests import MOST_LISTED, EmptyBody

SCHEDULE = Subject("id", "A reminder, as it was created or listed.")


class ScheduleRange(Params, frozen=True):
    thread: Id | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 100
    offset: Annotated[int, Meta(ge=0, le=MOST_OFFSET)] = 0


class RemindBody(Body):
    text: Annotated[str, documented("The text to tell.", minLength=1, maxLength=MOST_TEXT)]
    delay: Annotated[
        float | str | None, described('Seconds from now, or a text such as "20m"; this or `at`.')
    ] = None
    at: Annotated[
        float | str | None, described("ISO 8601 with its offset, or seconds since 1970; this or `delay`.")
    ] = None
    tool_call_id: Annotated[
        str | None, described("The tool call that asks: a second reminder for it is refused.")
    ] = None


class WireSchedule(Answer):
    """A reminder."""

    id: str
    thread: str
    text: str
    kind: Annotated[str, one_of("delay", "at")]
    state: Annotated[str, one_of("pending", "done", "cancelled")]
    due_at: Annotated[Time, described("By the wall clock; of a delay, if nobody sets that.")]
    occurrence: Annotated[Count, described("How often it has come.")]
    created_at: Time
    ended_at: Annotated[Time, described("When it came, or was cancelled.")]


class SchedulePage(Answer):
    schedules: list[WireSchedule]


def wire_schedule(schedule: Schedule) -> WireSchedule:
    return WireSchedule(
        id=schedule.id,
        thread=schedule.thread,
        text=schedule.text,
        kind=schedule.kind,
        state=schedule.state,
        due_at=iso(schedule.due_at),
        occurrence=schedule.occurrence,
        created_at=iso(schedule.created_at),
        ended_at=iso(schedule.ended_at),
    )


async def list_schedules(deps: Dependencies, asked: RequestContext[ScheduleRange, None]) -> SchedulePage:
    wanted = asked.params
    thread = own_thread(wanted.thread, asked.thread) if wanted.thread is not None else asked.thread
    found = await deps.tasks.schedules(thread, limit=wanted.limit, offset=wanted.offset)
    return SchedulePage([wire_schedule(one) for one in found])


async def remind(deps: Dependencies, asked: RequestContext[None, RemindBody]) -> WireSchedule:
    body = asked.body
    return wire_schedule(
        await deps.tasks.remind(
            asked.subject,
            body.text,
            at=time_of(body.at),
            delay=delay_of(body.delay),
            tool_call_id=body.tool_call_id,
        )
    )


async def cancel_schedule(deps: Dependencies, asked: RequestContext[None, EmptyBody]) -> WireSchedule:
    return wire_schedule(await deps.tasks.cancel_schedule(asked.subject, asked.thread))


READS: tuple[AnyRoute, ...] = (
    Route(
        method="GET",
        path="/v1/schedules",
        operation="listSchedules",
        summary="Reminders that are still to come",
        gives="The soonest first, of one thread or of all.",
        handler=list_schedules,
        params=ScheduleRange,
        answer=SchedulePage,
        errors=(404,),
    ),
)

WRITES: tuple[AnyRoute, ...] = (
    Route(
        method="POST",
        path="/v1/threads/{id}/schedules",
        operation="remind",
        summary="Tells a thread a text later, once",
        note="Either `delay` or `at`.",
        gives="The reminder.",
        handler=remind,
        access=Access.WRITE,
        subject=THREAD,
        body=RemindBody,
        answer=WireSchedule,
        status=201,
        errors=(409, 429, 507),
    ),
    Route(
        method="POST",
        path="/v1/schedules/{id}/cancel",
        operation="cancelSchedule",
        summary="Cancels a reminder: it never comes",
        gives="The reminder. Asked again, the answer is the same; 409 `ended` if it has come.",
        handler=cancel_schedule,
        access=Access.WRITE,
        subject=SCHEDULE,
        body=EmptyBody,
        answer=WireSchedule,
        errors=(409, 507),
    ),
)
