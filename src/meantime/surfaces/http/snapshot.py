"""The state as one event, written piece by piece: however long the history, no more than a page of it
is in memory at a time."""

from __future__ import annotations

from asyncio import Semaphore
from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace

from meantime.kernel.lifecycle import ACTIVE, Status
from meantime.kernel.model import Task
from meantime.ports.store import Query
from meantime.ports.tasks import Tasks

from .group_stats import wire_stats
from .paging import MOST, pages
from .responses import encode
from .task_encoding import wire_task

BOUNDED = 200  # the newest; what is active comes with them
MOST_ACTIVE = 1_000
_QUEUED = frozenset({Status.QUEUED})


async def snapshot(
    tasks: Tasks, query: Query, task: str | None, *, bounded: bool, id: int | None, building: Semaphore
) -> AsyncIterator[bytes]:
    """Current tasks are those that were not cleared. `bounded` says that these are not all of them.
    A reader that does not take its part keeps a text, and never the tasks that it was made of."""
    yield b"event: snapshot\ndata: " if id is None else b"id: %d\nevent: snapshot\ndata: " % id
    yield b'{"tasks":['
    shown = 0
    async for count, text in _texts(tasks, query, task, bounded, building):
        if shown:
            yield b","
        shown += count
        yield text
    stats = wire_stats(await tasks.statistics(query.thread), await _counts(tasks, query))
    yield b'],"stats":' + encode(stats) + b',"bounded":' + encode(bounded or shown >= MOST) + b"}\n\n"


async def _counts(tasks: Tasks, query: Query) -> dict[str, int]:
    """The ledger's own counts are of all threads: they are not for one alone."""
    return await tasks.stats() if query.thread is None else {}


async def _texts(
    tasks: Tasks, query: Query, task: str | None, bounded: bool, building: Semaphore
) -> AsyncIterator[tuple[int, bytes]]:
    """How many tasks, and their text."""
    if task is not None:
        yield 1, _text([await tasks.get(task, query.thread)])
    elif bounded:
        async with building:  # many may come at once
            found = await bounded_tasks(tasks, query)
            count, text = len(found), _text(found)
            del found  # a reader that does not take its part keeps the text alone
        if count:
            yield count, text
    else:
        async for page in pages(tasks, query):
            yield len(page), _text(page)


async def bounded_tasks(tasks: Tasks, query: Query) -> list[Task]:
    """The newest, and what is active, each once."""
    newest = (await tasks.page(replace(query, limit=BOUNDED), counted=False)).tasks
    known = {one.id for one in newest}
    return [*newest, *(one for one in await _active(tasks, query) if one.id not in known)]


async def _active(tasks: Tasks, query: Query) -> list[Task]:
    """Tasks at work or waiting for an answer first: no number of newer queued ones displaces them."""
    found: list[Task] = []
    for statuses in (ACTIVE - _QUEUED, _QUEUED):
        wanted = statuses if query.statuses is None else statuses & query.statuses
        if wanted and len(found) < MOST_ACTIVE:
            asked = replace(query, statuses=wanted, limit=MOST_ACTIVE - len(found))
            found += (await tasks.page(asked, counted=False)).tasks
    return found


def _text(found: Sequence[Task]) -> bytes:
    return b",".join([encode(wire_task(one)) for one in found])
