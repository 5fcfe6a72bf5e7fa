"""Lesson 8: a timeout is a cancel by the clock."""

from __future__ import annotations

import asyncio

import pytest

from meantime import Call, InvalidInput, Meantime, TaskTimedOut, Thread, TimedOut, current
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio


async def test_a_timeout_ends_the_work_and_keeps_what_it_emitted(ledger: str):
    """Seconds, given to `start`. What the work emitted until then is kept."""
    clock = FakeClock()  # in a test nobody waits for a minute
    begun = asyncio.Event()

    async def endless() -> None:
        current().emit("found", 3)
        begun.set()
        await asyncio.Event().wait()

    async with Meantime.open(ledger, clock=clock) as mt:
        handle = await mt.thread("conv-1").start(Call(endless), timeout=60)
        await begun.wait()
        await clock.advance(60)

        task = await handle.wait()
        assert task.status == "timed_out"
        assert task.outcome == TimedOut(60, emitted_vars={"found": 3})
        with pytest.raises(TaskTimedOut):
            await handle.result()


async def test_zero_is_not_a_timeout(thread: Thread):
    """No timeout is the default; -1 says so in words. Zero is refused, before anything starts."""
    with pytest.raises(InvalidInput, match="not possible"):
        await thread.start(Call(abs, 1), timeout=0)
