"""Long polls: for one task, for several, and for a thread that has something to be told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response

from meantime.kernel.errors import InvalidInput
from meantime.kernel.lifecycle import ACTIVE
from meantime.kernel.model import Task
from meantime.ports.store import Query

from . import answers, asking
from .body import Body
from .endpoint import Table, thread_of
from .parts import Parts
from .sweep import sweep
from .wire import wire_task

DEFAULT, LONGEST = 60.0, 600.0  # seconds
MOST = 1_000  # tasks


class WaitBody(Body):
    ids: list[str] | None = None
    batch: str | None = None
    thread: str | None = None
    until: Literal["all", "any"] = "all"
    timeout: float = DEFAULT


class Waiting:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._tasks = parts.tasks

    def table(self) -> Table:
        return {
            "GET /v1/tasks/{id}/wait": self.one,
            "POST /v1/wait": self.several,
            "GET /v1/threads/{id}/wake": self.wake,
        }

    async def one(self, request: Request) -> Response:
        seconds = asking.seconds(request.query_params, "timeout", DEFAULT, LONGEST)
        task = await self._parts.task(request)
        (found,) = await self._wait(request, [task.id], "all", seconds)
        return answers.json(wire_task(found, whole=True))

    async def several(self, request: Request) -> Response:
        body = await self._parts.body(request, WaitBody)
        if not 0 <= body.timeout <= LONGEST:
            raise InvalidInput(f"timeout: a wait takes from 0 to {LONGEST:g} seconds.")
        ids = await self._chosen(body, thread_of(request))
        found = await self._wait(request, ids, body.until, body.timeout)
        ended = [task.ended for task in found]
        done = all(ended) if body.until == "all" else any(ended) or not ended
        return answers.json({"tasks": [wire_task(task) for task in found], "done": done})

    async def wake(self, request: Request) -> Response:
        given = request.query_params
        thread = asking.own_thread(request.path_params["id"], thread_of(request))
        seconds = asking.seconds(given, "timeout", DEFAULT, LONGEST)
        seen = -1 if given.get("seen", "-1") == "-1" else asking.number(given, "seen", 0)
        async with self._parts.polls.waiting(request.receive) as poll:
            signal = await poll.first(self._tasks.wait_wake(thread, seen), seconds)
        return Response(status_code=204) if signal is None else answers.json({"seen": signal, "idle": True})

    async def _wait(self, request: Request, ids: Sequence[str], until: str, seconds: float) -> Sequence[Task]:
        """The tasks as they are when it is over, whyever it is."""
        found = None
        if seconds:
            async with self._parts.polls.waiting(request.receive) as poll:
                found = await poll.first(self._tasks.wait(ids, None, until=until, timeout=seconds))
        return [await self._tasks.get(id, None) for id in ids] if found is None else found

    async def _chosen(self, body: WaitBody, thread: str | None) -> list[str]:
        """The named ones, all of a batch, or what is active in a thread now."""
        scope = asking.own_thread(body.thread, thread) if body.thread is not None else thread
        if body.ids is not None:
            if body.batch is not None or len(body.ids) > MOST:
                raise InvalidInput(f"ids: name at most {MOST} tasks, and no batch with them.")
            found = [await asking.find(self._tasks, id, scope) for id in body.ids]
        elif body.batch is not None or scope is not None:
            statuses = None if body.batch is not None else ACTIVE
            query = Query(scope, statuses, body.batch, hidden=True)
            found = [task async for page in sweep(self._tasks, query, MOST) for task in page][::-1]
        else:
            raise InvalidInput("Nothing to wait for is named.", hint="Give ids, batch or thread.")
        return list(dict.fromkeys(task.id for task in found))
