"""Stopping work, talking to it while it runs, and putting away what has ended."""

from __future__ import annotations

import base64
import binascii
import contextlib

from starlette.requests import Request

from meantime.kernel.errors import Closed, InvalidInput
from meantime.kernel.lifecycle import ENDED
from meantime.kernel.timeouts import check_age
from meantime.ports.store import Query
from meantime.ports.tasks import CancelAnswer

from .dependencies import Dependencies
from .notice_encoding import wire_cancel
from .paging import pages
from .responses import Refusal
from .routing import RequestContext
from .task_encoding import wire_task
from .task_lookup import find, own_thread, statuses
from .task_requests import (
    DEFAULT_WAIT,
    AnswerBody,
    CancelAllBody,
    CancelBody,
    ClearBody,
    NotifyBody,
    PurgeBody,
    SendBody,
)
from .task_schemas import Cancelled, CancelledTasks, Cleared, Notified, Purged, Sent, WireTask

AT_ONCE = 100  # tasks of one deletion, so that nobody waits long behind it
ALL = 1_000_000_000


async def cancel(deps: Dependencies, asked: RequestContext[None, CancelBody]) -> Cancelled:
    task = await find(deps.tasks, asked.subject, asked.thread)
    answer = await deps.tasks.cancel(task.id, None, by=_who(asked.thread), reason=asked.body.reason)
    if asked.body.wait and not answer.task.ended:
        await _ending(deps, asked.request, task.id)
        answer = CancelAnswer(await deps.tasks.get(task.id, None), answer.disposition, answer.killed)
    return wire_cancel(answer)


async def _ending(deps: Dependencies, request: Request, id: str) -> None:
    """The cancel is done: where nobody can wait any more, the answer says how far it is."""
    with contextlib.suppress(Refusal, Closed):
        async with deps.polls.waiting(request.receive) as poll:
            await poll.first(deps.tasks.wait([id], None), DEFAULT_WAIT)


async def cancel_all(deps: Dependencies, asked: RequestContext[None, CancelAllBody]) -> CancelledTasks:
    body, by = asked.body, _who(asked.thread)
    thread = _thread(body.thread, asked.thread)
    found = await deps.tasks.cancel_all(thread, batch=body.batch, descendants=body.descendants, by=by)
    return CancelledTasks(answers=[wire_cancel(answer) for answer in found])


async def send(deps: Dependencies, asked: RequestContext[None, SendBody]) -> Sent:
    task = await find(deps.tasks, asked.subject, asked.thread)
    return Sent(sent=await deps.tasks.send(task.id, None, _data(asked.body), eof=asked.body.eof))


async def notify(deps: Dependencies, asked: RequestContext[None, NotifyBody]) -> Notified:
    task = await find(deps.tasks, asked.subject, asked.thread)
    return Notified(notified=await deps.tasks.notify(task.id, None, asked.body.text))


async def answer(deps: Dependencies, asked: RequestContext[None, AnswerBody]) -> WireTask:
    """A permission is a person's to give: the token of a thread may only refuse one."""
    body, by = asked.body, _who(asked.thread)
    task = await find(deps.tasks, asked.subject, asked.thread)
    found = await deps.tasks.answer(
        task.id, None, body.answer, scope=body.scope, by=by, question=body.question
    )
    return wire_task(found, whole=True)


async def clear(deps: Dependencies, asked: RequestContext[None, ClearBody]) -> Cleared:
    body, thread = asked.body, _thread(asked.body.thread, asked.thread)
    count = await deps.tasks.clear(thread, body.ids, batch=body.batch, older_than=body.older_than)
    return Cleared(cleared=count)


async def purge(deps: Dependencies, asked: RequestContext[None, PurgeBody]) -> Purged:
    """For good, and with what was not told yet: that is for a person to say."""
    body = asked.body
    if (body.ids is None) == (body.ended_before is None):
        raise InvalidInput("Give either ids or endedBefore.", hint="endedBefore is in seconds ago.")
    ids = await _old(deps, body) if body.ids is None else body.ids
    purged = 0
    for start in range(0, len(ids), AT_ONCE):
        purged += await deps.tasks.purge(ids[start : start + AT_ONCE])
    return Purged(purged=purged)


async def _old(deps: Dependencies, body: PurgeBody) -> list[str]:
    latest = deps.clock.now() - check_age(body.ended_before)
    ended = ENDED
    if body.statuses is not None:
        ended = (statuses(body.statuses)[0] or ENDED) & ENDED
    found = pages(deps.tasks, Query(statuses=ended, hidden=True), ALL)
    return [task.id async for page in found for task in page if (task.run.ended_at or 0.0) <= latest]


def _who(thread: str | None) -> str:
    return "user" if thread is None else "agent"


def _thread(named: str | None, own: str | None) -> str:
    """A caller that is bound to a thread means its own."""
    thread = named or own
    if thread is None:
        raise InvalidInput("thread is missing.", hint="Name the thread whose tasks are meant.")
    return own_thread(thread, own)


def _data(body: SendBody) -> str | bytes:
    if body.data_base64 is None:
        return body.data or ""
    if body.data is not None:
        raise InvalidInput("data and dataBase64 exclude each other.", hint="Choose one.")
    try:
        return base64.b64decode(body.data_base64, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("dataBase64 is not base64.") from None
