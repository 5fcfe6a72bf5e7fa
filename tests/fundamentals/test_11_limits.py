"""Lesson 11: only so much runs at once; the rest queues, or is refused."""

from __future__ import annotations

import asyncio

import pytest

from meantime import Call, LimitReached, Meantime, Thread

pytestmark = pytest.mark.anyio


async def test_over_the_limit_work_queues(mt: Meantime, thread: Thread):
    """A queued task is on record, visible, and knows its place. The next free slot is its own."""
    await mt.set_limits(per_thread=1)
    may_finish = asyncio.Event()
    first = await thread.start(Call(may_finish.wait))
    second = await thread.start(Call(abs, -2))

    assert second.task.status == "queued"
    assert await thread.position(second) == 1

    may_finish.set()
    assert await second.result() == 2
    ended, began = (await first.get()).run.ended_at, (await second.get()).run.started_at
    assert ended is not None
    assert began is not None
    assert ended <= began


async def test_or_is_refused(mt: Meantime, thread: Thread):
    """`on_limit="reject"` makes it an error that says how many run, and what to do."""
    await mt.set_limits(per_thread=1)
    await thread.start(Call(asyncio.Event().wait))

    with pytest.raises(LimitReached, match="1 of at most 1"):
        await thread.start(Call(abs, -2), on_limit="reject")
