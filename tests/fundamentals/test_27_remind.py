"""Lesson 27: a conversation asks to be told something later, or starts work later."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT

from meantime import Call, Meantime
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio


async def test_a_reminder_is_a_notice_that_comes_later(ledger: str) -> None:
    """`remind` returns at once. When its time has come, the thread is told, once, as of an ending."""
    clock = FakeClock()
    async with Meantime.open(ledger, clock=clock) as mt:
        thread = mt.thread("conv-1")
        schedule = await thread.remind("look at the deploy", delay="20m")
        assert [one.id for one in await thread.schedules()] == [schedule.id]
        await clock.advance(20 * 60)
        await anext(aiter(thread.wakeups()))
        async with thread.turn() as turn:
            (notice,) = turn.notices
            assert (notice.kind, notice.text) == ("alarm", "look at the deploy")
            await turn.ack()
        assert await thread.schedules() == []


async def test_a_cancelled_reminder_never_comes(ledger: str) -> None:
    """Its id is enough to cancel it, today or in another process."""
    clock = FakeClock()
    async with Meantime.open(ledger, clock=clock) as mt:
        thread = mt.thread("conv-1")
        schedule = await thread.remind("look at the deploy", delay="20m")
        await thread.cancel_schedule(schedule.id)
        await clock.advance(20 * 60)
        async with thread.turn() as turn:
            assert turn.notices == []


async def now() -> str:
    return "it is time"


async def test_work_can_start_later(ledger: str) -> None:
    """Until its time it is queued, and takes no slot of other work."""
    clock = FakeClock()
    async with Meantime.open(ledger, clock=clock) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Call(now), delay="20m")
        assert (await thread.get(handle)).status == "queued"
        await clock.advance(20 * 60)
        async with asyncio.timeout(LIMIT):
            assert await handle.result() == "it is time"
