"""Lesson 28: work tells its conversation something before it ends."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT

from meantime import Call, Thread, current

pytestmark = pytest.mark.anyio


async def migrate(go_on: asyncio.Event) -> str:
    current().progress(percent=40)  # is shown to people, and told to nobody
    await current().notify("The schema is ready; the data follows.")
    await go_on.wait()
    return "42 tables"


async def test_a_running_function_tells_and_then_ends(thread: Thread):
    """An event is told as an ending is: once, in the same order. An idle agent is woken by it."""
    go_on = asyncio.Event()
    handle = await thread.start(Call(migrate, go_on))
    async with asyncio.timeout(LIMIT):
        await anext(aiter(thread.wakeups()))
    async with thread.turn() as turn:
        (notice,) = turn.notices
        assert (notice.kind, notice.id) == ("event", f"{handle.id}.1.1")
        assert notice.text == "The schema is ready; the data follows."
        assert not notice.task.ended
        await turn.ack()

    go_on.set()
    await handle.wait()
    async with thread.turn() as turn:
        assert [(notice.kind, notice.text) for notice in turn.notices] == [("ending", "42 tables")]
        await turn.ack()


async def test_a_conversation_is_told_of_a_task_from_outside(thread: Thread):
    """At a shell this is `meantime notify`, which finds its own task by MEANTIME_TASK."""
    handle = await thread.start(Call(asyncio.Event().wait))
    assert await thread.notify(handle, "the build is red") == "sent"
    async with thread.turn() as turn:
        assert [notice.text for notice in turn.notices] == ["the build is red"]
        await turn.ack()
    await handle.cancel(wait=True)
