"""Lesson 17: wait a little, and hand off only what is slow."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import until_async

from meantime import Call, Thread

pytestmark = pytest.mark.anyio


async def test_a_quick_call_is_answered_at_once(thread: Thread):
    """Under the threshold you get the result, as from a plain call. No task was ever there."""
    answer = await thread.call(Call(abs, -4), threshold=30)

    assert (answer.mode, answer.result, answer.task) == ("synchronous", 4, None)
    assert await thread.list("all") == []


async def test_a_slow_call_becomes_a_task(thread: Thread):
    """Over it you get a task. It is the same run, which goes on: nothing is executed twice."""
    runs: list[str] = []
    may_finish = asyncio.Event()

    async def slow() -> str:
        runs.append("run")
        await may_finish.wait()
        return "at last"

    answer = await thread.call(Call(slow), threshold=0.01)
    assert answer.mode == "background"
    assert answer.result is None

    may_finish.set()
    assert answer.task is not None
    await thread.wait(answer.task)
    assert await thread.result(answer.task) == "at last"
    assert runs == ["run"]


async def test_a_call_can_be_sent_to_the_background_by_hand(thread: Thread):
    """`calls()` shows what is waited for; `promote` makes it a task, and whoever waits gets that task."""
    may_finish = asyncio.Event()
    waiting = asyncio.create_task(thread.call(Call(may_finish.wait), description="a long wait"))
    (call,) = await until_async(thread.calls, "the call has begun")

    handle = await thread.promote(call)
    answer = await waiting
    assert (answer.mode, answer.task.id) == ("background", handle.id)

    may_finish.set()
    assert await handle.result() is True
