"""Lesson 1: hand work off, and keep talking."""

from __future__ import annotations

import asyncio

import pytest

from meantime import Call, Thread

pytestmark = pytest.mark.anyio


async def test_hand_off_and_keep_talking(thread: Thread):
    """`start` returns as soon as the task is on record, long before the work is done.

    You get a handle with an id. Your agent goes on talking; the work goes on beside it. Work is a
    function and its arguments, kept apart: `Call(fn, 1, 2)`, not `Call(fn(1, 2))`.
    """
    may_finish = asyncio.Event()

    async def index(folder: str) -> str:
        await may_finish.wait()
        return f"{folder}: 3 files"

    handle = await thread.start(Call(index, "src"), description="index the repo")

    assert handle.id.startswith("t_")
    assert handle.task.status == "running"  # and here the agent says something to the user

    may_finish.set()
    assert await handle.result() == "src: 3 files"
    assert (await handle.get()).status == "completed"
