"""The state as one event, written piece by piece: however long the history, no more than a page of it
is in memory at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace

from meantime.kernel.lifecycle import ACTIVE
from meantime.kernel.model import Task
from meantime.ports.store import Query
from meantime.ports.tasks import Tasks

from .answers import encode
from .summary import wire_stats
from .sweep import MOST, sweep
from .wire import wire_task

BOUNDED = 200  # the newest; what is active comes with them
MOST_ACTIVE = 1_000


async def snapshot(
    tasks: Tasks, query: Query, task: str | None, *, bounded: bool, id: int | None
) -> AsyncIterator[bytes]:
    """Current tasks are those that were not cleared. `bounded` says that these are not all of them."""
    yield b"event: snapshot\ndata: " if id is None else b"id: %d\nevent: snapshot\ndata: " % id
    first, shown = True, 0
    async for page in _pages(tasks, query, task, bounded):
        shown += len(page)
        encoded = b",".join(encode(wire_task(one)) for one in page)
        yield (b'{"tasks":[' if first else b",") + encoded
        first = False
    stats = wire_stats(await tasks.statistics(query.thread), await _counts(tasks, query))
    yield (b'{"tasks":[' if first else b"") + b'],"stats":' + encode(stats)
    yield b',"bounded":' + encode(bounded or shown >= MOST) + b"}\n\n"


async def _counts(tasks: Tasks, query: Query) -> dict[str, int]:
    """The ledger's own counts are of all threads: they are not for one alone."""
    return await tasks.stats() if query.thread is None else {}


async def _pages(
    tasks: Tasks, query: Query, task: str | None, bounded: bool
) -> AsyncIterator[Sequence[Task]]:
    if task is not None:
        yield [await tasks.get(task, query.thread)]
        return
    if not bounded:
        async for page in sweep(tasks, query):
            yield page
        return
    newest = (await tasks.page(replace(query, limit=BOUNDED), counted=False)).tasks
    active = (await tasks.page(replace(query, statuses=ACTIVE, limit=MOST_ACTIVE), counted=False)).tasks
    known = {one.id for one in newest}
    older = [one for one in active if one.id not in known]
    if newest:
        yield [*newest, *older]
