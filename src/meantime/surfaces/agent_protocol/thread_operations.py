"""Threads: created, found, and their state: the messages of the agent that was last at work there."""

from __future__ import annotations

import uuid
from typing import Any

from starlette.responses import Response

from meantime.kernel.durations import iso
from meantime.kernel.errors import InvalidInput, NotFound, Refused
from meantime.kernel.model import Task
from meantime.surfaces.agent_runs.numbered_run import NumberedRun
from meantime.surfaces.http.responses import Refusal, json_response
from meantime.surfaces.http.task_lookup import own_thread

from .operation import Operation, ProtocolRequest, ProtocolSite
from .run_encoding import Wire, interrupts, thread_status, values_of, wire_state
from .run_requests import HistoryBody, ThreadCreate, ThreadPatch, ThreadSearch
from .thread_records import ThreadTimes, check_thread, matches

SCANNED = 1_000  # threads that a search looks at: where something happened last


async def create_thread(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    given: ThreadCreate = asked.body
    for name in ("ttl", "supersteps"):
        if getattr(given, name):
            raise InvalidInput(f"{name} is not supported here.", hint="Leave it out.", code="unsupported")
    if given.thread_id is None and asked.own is not None:
        text = "This token sees its own thread only."
        raise Refusal(403, "own_thread_only", text, f"Create it with thread_id={asked.own!r}.")
    id = own_thread(check_thread(given.thread_id or str(uuid.uuid4())), asked.own)
    if given.thread_id is not None and await exists(site, id):
        if given.if_exists != "do_nothing":
            raise Refused(
                f"The thread {id} exists.", code="thread_exists", hint='Use if_exists="do_nothing".'
            )
        return json_response(await wire_thread(site, id))
    await site.records.put(id, given.metadata or {})
    return json_response(await wire_thread(site, id))


async def get_thread(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    return json_response(await wire_thread(site, await known(site, asked.thread)))


async def patch_thread(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    """The metadata that is given is added to what is there."""
    id = await known(site, asked.thread)
    given: ThreadPatch = asked.body
    record = await site.records.find(id)
    await site.records.put(id, {**(record.metadata if record else {}), **(given.metadata or {})})
    return json_response(await wire_thread(site, id))


async def delete_thread(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    """With its runs, for good: that is for a person to say."""
    if asked.own is not None:
        text = "This is not for the token of a thread."
        raise Refusal(403, "person_only", text, "Use the server's own token, or its unix socket.")
    id = await known(site, asked.thread)
    runs = await site.conversations.runs(id, SCANNED, 0)
    if any(not run.ended for run in runs):
        raise Refused(f"The thread {id} has a run that goes on.", code="thread_busy", hint="Cancel it first.")
    await site.tasks.purge(list(dict.fromkeys(run.task.id for run in runs)))
    await site.records.delete(id)
    return Response(status_code=204)


async def search_threads(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    given: ThreadSearch = asked.body
    found = await _matching(site, asked, given)
    return json_response([await wire_thread(site, id) for id in found[given.offset :][: given.limit]])


async def count_threads(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    return json_response(len(await _matching(site, asked, asked.body)))


async def get_state(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    return json_response(await _state(site, await known(site, asked.thread)))


async def get_history(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    """Only the newest state is kept as one."""
    return json_response([await _state(site, await known(site, asked.thread))])


async def known(site: ProtocolSite, id: str) -> str:
    if not await exists(site, id):
        raise NotFound(f"There is no thread {id!r}.", hint="Create it first.", code="unknown_thread")
    return id


async def exists(site: ProtocolSite, id: str) -> bool:
    return await site.records.find(id) is not None or await site.conversations.newest(id) is not None


async def values(site: ProtocolSite, task: Task | None) -> Wire:
    """The conversation up to this run of the task, or up to now."""
    if task is None:
        return values_of(None, ())
    page = await site.follower.lines(NumberedRun(task, task.run.number))
    return values_of(task, [one for one in page.lines if one.line.run <= task.run.number])


async def wire_thread(site: ProtocolSite, id: str) -> Wire:
    record, task = await site.records.find(id), await site.conversations.newest(id)
    paused = interrupts(task)
    return {
        "thread_id": id,
        "created_at": iso(_created(record, task)),
        "updated_at": iso(max(record.updated_at if record else 0.0, task.updated_at if task else 0.0)),
        "metadata": record.metadata if record else {},
        "status": thread_status(task),
        "config": {},
        "values": await values(site, task),
        "interrupts": {f"{task.id}.{task.run.number}": paused} if task is not None and paused else {},
    }


def _created(record: ThreadTimes | None, task: Task | None) -> float:
    return record.created_at if record is not None else task.created_at if task is not None else 0.0


async def _state(site: ProtocolSite, id: str) -> Wire:
    task = await site.conversations.newest(id)
    return wire_state(id, task, await values(site, task))


async def _matching(site: ProtocolSite, asked: ProtocolRequest, given: ThreadSearch) -> list[str]:
    """Threads with agents in them. One that has no run yet is found by its id alone."""
    if given.values:
        raise InvalidInput("values is not supported here.", hint="Search by metadata.", code="unsupported")
    candidates = given.ids
    if candidates is None:
        counted = await site.tasks.threads(SCANNED)
        candidates = [one.id for one in counted] if asked.own is None else [asked.own]
    allowed = [id for id in dict.fromkeys(candidates) if asked.own in (None, id)]
    return [id for id in allowed if await _fits(site, id, given.metadata, given.status)]


async def _fits(site: ProtocolSite, id: str, metadata: dict[str, Any] | None, status: str | None) -> bool:
    record = await site.records.find(id)
    if not matches(record.metadata if record else {}, metadata):
        return False
    task = await site.conversations.newest(id)
    return (record is not None or task is not None) and status in (None, thread_status(task))


OPERATIONS = (
    Operation("POST", "/threads", create_thread, ThreadCreate, writes=True),
    Operation("POST", "/threads/search", search_threads, ThreadSearch),
    Operation("POST", "/threads/count", count_threads, ThreadSearch),
    Operation("GET", "/threads/{thread}", get_thread),
    Operation("PATCH", "/threads/{thread}", patch_thread, ThreadPatch, writes=True),
    Operation("DELETE", "/threads/{thread}", delete_thread, writes=True),
    Operation("GET", "/threads/{thread}/state", get_state),
    Operation("POST", "/threads/{thread}/history", get_history, HistoryBody),
    Operation("GET", "/threads/{thread}/history", get_history),
)
