"""Lesson 4: an idle agent is woken."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT

from meantime import Call, Thread
from outcomes import completed

pytestmark = pytest.mark.anyio


async def test_an_idle_thread_is_woken(thread: Thread):
    """`wakeups()` yields whenever the thread has something unread and no turn is open.

    That is the whole loop of an agent that waits for its work: wake, take a turn, acknowledge.
    """
    told: list[int] = []

    async def agent() -> None:
        async for _ in thread.wakeups():
            async with thread.turn() as turn:
                told.extend(completed(notice).result for notice in turn.notices)
                await turn.ack()
            if len(told) == 2:
                return

    waiting = asyncio.create_task(agent())
    await thread.start(Call(abs, -1))
    await thread.start(Call(abs, -2))
    await asyncio.wait_for(waiting, LIMIT)

    assert sorted(told) == [1, 2]


async def test_a_busy_thread_is_not_interrupted(thread: Thread):
    """What ends while a turn is open waits for its end, or for a boundary that the turn asks for."""
    async with thread.turn() as turn:
        handle = await thread.start(Call(abs, -3))
        await handle.wait()
        assert turn.notices == []

        fresh = await turn.boundary()
        assert [notice.task_id for notice in fresh] == [handle.id]
        await turn.ack()
