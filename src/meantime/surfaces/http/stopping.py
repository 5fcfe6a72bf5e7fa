"""Stopping work, talking to it while it runs, and putting away what has ended."""

from __future__ import annotations

import base64
import binascii
import contextlib

from starlette.requests import Request
from starlette.responses import Response

from meantime.kernel.errors import Closed, InvalidInput
from meantime.kernel.lifecycle import ENDED
from meantime.kernel.timeouts import check_age
from meantime.ports.store import Query
from meantime.ports.tasks import CancelAnswer

from . import answers, asking
from .answers import Refusal
from .body import Body
from .endpoint import Table, person_only, thread_of
from .parts import Parts
from .sweep import sweep
from .waiting import DEFAULT
from .wire import wire_task
from .wire_notices import wire_cancel

AT_ONCE = 100  # tasks of one deletion, so that nobody waits long behind it
ALL = 1_000_000_000


class CancelBody(Body):
    reason: str = ""
    wait: bool = False


class CancelAllBody(Body):
    thread: str | None = None
    batch: str | None = None
    descendants: bool = False


class SendBody(Body):
    data: str | None = None
    data_base64: str | None = None
    eof: bool = False


class AnswerBody(Body):
    answer: str
    scope: str | None = None


class ClearBody(Body):
    thread: str | None = None
    ids: list[str] | None = None
    batch: str | None = None
    older_than: float = 0.0


class PurgeBody(Body):
    ids: list[str] | None = None
    ended_before: float | None = None  # seconds ago
    statuses: list[str] | None = None


class Stopping:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks = parts.tasks

    def table(self) -> Table:
        return {
            "POST /v1/tasks/{id}/cancel": self.cancel,
            "POST /v1/tasks/{id}/send": self.send,
            "POST /v1/tasks/{id}/answer": self.answer,
            "POST /v1/cancel": self.cancel_all,
            "POST /v1/clear": self.clear,
            "POST /v1/purge": self.purge,
        }

    async def cancel(self, request: Request) -> Response:
        body = await self._parts.body(request, CancelBody)
        task = await self._parts.task(request)
        answer = await self._tasks.cancel(task.id, None, by=_who(request), reason=body.reason)
        if body.wait and not answer.task.ended:
            await self._ending(request, task.id)
            answer = CancelAnswer(await self._tasks.get(task.id, None), answer.disposition, answer.killed)
        return answers.json(wire_cancel(answer))

    async def _ending(self, request: Request, id: str) -> None:
        """The cancel is done: where nobody can wait any more, the answer says how far it is."""
        with contextlib.suppress(Refusal, Closed):
            async with self._parts.polls.waiting(request.receive) as poll:
                await poll.first(self._tasks.wait([id], None, timeout=DEFAULT))

    async def cancel_all(self, request: Request) -> Response:
        body = await self._parts.body(request, CancelAllBody)
        thread = _thread(request, body.thread)
        found = await self._tasks.cancel_all(
            thread, batch=body.batch, descendants=body.descendants, by=_who(request)
        )
        return answers.json({"answers": [wire_cancel(answer) for answer in found]})

    async def send(self, request: Request) -> Response:
        body = await self._parts.body(request, SendBody)
        task = await self._parts.task(request)
        became = await self._tasks.send(task.id, None, _data(body), eof=body.eof)
        return answers.json({"sent": became})

    async def answer(self, request: Request) -> Response:
        """A permission is a person's to give: the token of a thread may only refuse one."""
        body = await self._parts.body(request, AnswerBody)
        task = await self._parts.task(request)
        task = await self._tasks.answer(task.id, None, body.answer, scope=body.scope, by=_who(request))
        return answers.json(wire_task(task, whole=True))

    async def clear(self, request: Request) -> Response:
        body = await self._parts.body(request, ClearBody)
        thread = _thread(request, body.thread)
        count = await self._tasks.clear(thread, body.ids, batch=body.batch, older_than=body.older_than)
        return answers.json({"cleared": count})

    async def purge(self, request: Request) -> Response:
        """For good, and with what was not told yet: that is for a person to say."""
        person_only(request)
        body = await self._parts.body(request, PurgeBody)
        if (body.ids is None) == (body.ended_before is None):
            raise InvalidInput("Give either ids or endedBefore.", hint="endedBefore is in seconds ago.")
        ids = await self._old(body) if body.ids is None else body.ids
        purged = 0
        for start in range(0, len(ids), AT_ONCE):
            purged += await self._tasks.purge(ids[start : start + AT_ONCE])
        return answers.json({"purged": purged})

    async def _old(self, body: PurgeBody) -> list[str]:
        latest = self._parts.clock.now() - check_age(body.ended_before)
        statuses = ENDED
        if body.statuses is not None:
            statuses = (asking.statuses(",".join(body.statuses))[0] or ENDED) & ENDED
        query = Query(statuses=statuses, hidden=True)
        pages = sweep(self._tasks, query, ALL)
        return [task.id async for page in pages for task in page if (task.run.ended_at or 0.0) <= latest]


def _who(request: Request) -> str:
    return "user" if thread_of(request) is None else "agent"


def _thread(request: Request, named: str | None) -> str:
    """A caller that is bound to a thread means its own."""
    own = thread_of(request)
    thread = named or own
    if thread is None:
        raise InvalidInput("thread is missing.", hint="Name the thread whose tasks are meant.")
    return asking.own_thread(thread, own)


def _data(body: SendBody) -> str | bytes:
    if body.data_base64 is None:
        return body.data or ""
    if body.data is not None:
        raise InvalidInput("data and dataBase64 exclude each other.", hint="Choose one.")
    try:
        return base64.b64decode(body.data_base64, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput("dataBase64 is not base64.") from None
