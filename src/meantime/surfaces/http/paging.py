"""All of a query, page by page, so that a long history is never in memory twice and never stops the loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace

from meantime.kernel.model import Task
from meantime.ports.store import Query
from meantime.ports.tasks import Tasks

PIECE = 40
OVERLAP = 8  # tasks may leave between two pages, and must not take a neighbour with them
MOST = 20_000  # tasks in one answer


async def pages(tasks: Tasks, query: Query, most: int = MOST) -> AsyncIterator[Sequence[Task]]:
    """Each task once, newest first, at most `most`. Events that come meanwhile are somebody else's news."""
    seen: set[str] = set()
    offset = 0
    while len(seen) < most:
        page = (await tasks.page(replace(query, limit=PIECE, offset=offset), counted=False)).tasks
        fresh = [task for task in page if task.id not in seen][: most - len(seen)]
        seen.update(task.id for task in fresh)
        if fresh:
            yield fresh
        if len(page) < PIECE:
            return
        offset += PIECE - OVERLAP
        await asyncio.sleep(0)
