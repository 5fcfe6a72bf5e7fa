"""Long polls: for one task, for several, and for a thread that has something to be told."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request

from meantime.kernel.errors import InvalidInput
from meantime.kernel.lifecycle import ACTIVE
from meantime.kernel.limits import WATCH
from meantime.kernel.model import Task
from meantime.ports.store import Query
from meantime.ports.tasks import Tasks

from .dependencies import Dependencies
from .notice_schemas import Wake
from .paging import pages
from .routing import RequestContext
from .task_encoding import wire_task
from .task_lookup import find, own_thread
from .task_requests import MOST_WAITED, WaitBody, WaitTime
from .task_schemas import WaitedTasks, WireTask
from .thread_requests import WakeSignal


async def wait_task(deps: Dependencies, asked: RequestContext[WaitTime, None]) -> WireTask:
    task = await find(deps.tasks, asked.subject, asked.thread)
    (found,) = await _ended(deps, asked.request, [task.id], "all", asked.params.timeout)
    return wire_task(found, whole=True)


async def wait_tasks(deps: Dependencies, asked: RequestContext[None, WaitBody]) -> WaitedTasks:
    body = asked.body
    ids = await _chosen(deps.tasks, body, asked.thread)
    found = await _ended(deps, asked.request, ids, body.until, body.timeout)
    ended = [task.ended for task in found]
    done = all(ended) if body.until == "all" else any(ended) or not ended
    return WaitedTasks(tasks=[wire_task(task) for task in found], done=done)


async def wait_wake(deps: Dependencies, asked: RequestContext[WakeSignal, None]) -> Wake | None:
    async with deps.polls.waiting(asked.request.receive) as poll:
        waking = deps.tasks.wait_wake(asked.subject, asked.params.seen)
        signal = await poll.first(waking, asked.params.timeout)
    return None if signal is None else Wake(seen=signal, idle=True)


async def _ended(
    deps: Dependencies, request: Request, ids: Sequence[str], until: str, seconds: float
) -> Sequence[Task]:
    """The tasks as they are when the wait is over, whatever ended it."""
    found = None
    if seconds:
        async with deps.polls.waiting(request.receive) as poll:
            found = await poll.first(deps.tasks.wait(ids, None, until=until), seconds)
    return [await deps.tasks.get(id, None) for id in ids] if found is None else found


async def _chosen(tasks: Tasks, body: WaitBody, thread: str | None) -> list[str]:
    """The named ones, all of a batch, or what is active in a thread now, without watches, which may never
    end."""
    scope = own_thread(body.thread, thread) if body.thread is not None else thread
    if body.ids is not None:
        if body.batch is not None:
            raise InvalidInput(f"ids: name at most {MOST_WAITED} tasks, and no batch with them.")
        found = [await find(tasks, id, scope) for id in body.ids]
    elif body.batch is not None or scope is not None:
        statuses = None if body.batch is not None else ACTIVE
        query = Query(scope, statuses, body.batch, hidden=True)
        listed = [task async for page in pages(tasks, query, MOST_WAITED) for task in page][::-1]
        found = [task for task in listed if task.work.kind != WATCH or body.batch is not None]
    else:
        raise InvalidInput("Nothing to wait for is named.", hint="Give ids, batch or thread.")
    return list(dict.fromkeys(task.id for task in found))
