"""A call that was lost with its owner: whether the next owner has it, by its whole id.

The verbs also take prefixes: an owner that is asked for `job-6` and does not have it gives `job-61`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from meantime.kernel.errors import Ambiguous, Disconnected, NotFound, Refused
from meantime.kernel.model import Task
from meantime.link.verb_messages import VERBS

Request = Callable[..., Awaitable[Any]]  # of a verb, with its arguments


async def as_task(request: Request, id: str, thread: str) -> Task | None:
    """A call that the owner still has inline is not a task yet, and is made one. A caller that does not know
    whether it was made one asks again: otherwise it would be answered here, and told as well.
    """
    while True:
        try:
            return await task_of(request, id, thread) or await _promoted(request, id, thread)
        except (Disconnected, Refused) as problem:
            if problem.code not in ("in_doubt", "already_a_task"):
                raise


async def task_of(request: Request, id: str, thread: str) -> Task | None:
    """The task of this very id; None if the owner does not have it."""
    with contextlib.suppress(NotFound, Ambiguous):
        task: Task = await request(VERBS["get"], id, thread)
        return task if task.id == id else None
    return None


async def _promoted(request: Request, id: str, thread: str) -> Task | None:
    """A call of this very id as a task; None if the owner does not have it. One that is not inline any more
    may have become a task since it was asked for."""
    calls: Sequence[Task] = await request(VERBS["calls"], thread)
    if any(call.id == id for call in calls):
        with contextlib.suppress(NotFound):
            return await request(VERBS["promote"], id, thread)
    return await task_of(request, id, thread)
