"""A watch that starts later begins then: its deadline, and what is new to it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import stays_async, until_async

from meantime import Call, Meantime, Shell, Watch
from meantime.testing import FakeClock

from .told import EACH, first_look, told

pytestmark = pytest.mark.anyio


async def test_the_deadline_counts_from_its_start(ledger: str):
    clock = FakeClock()
    async with Meantime.open(ledger, clock=clock, settings=EACH) as mt:
        thread = mt.thread("conv-1")
        work = await thread.start(Call(asyncio.Event().wait))
        watch = await thread.start(Watch(task=work, deadline=30), delay=60)
        await clock.advance(60.0)
        await first_look(thread, watch.id)
        await clock.advance(29.0)

        async def runs() -> bool:
            return (await thread.get(watch.id)).status == "running"

        await stays_async(runs, "the watch runs until its deadline")
        await clock.advance(1.0)
        assert await told(thread, watch.id, 1) == [("ending", "nothing matched until the deadline")]


async def test_the_deadline_goes_on_over_a_restart(tmp_path: Path):
    clock, ledger = FakeClock(), tmp_path / "work.db"
    async with Meantime.open(ledger, clock=clock) as mt:
        watch = await mt.thread("conv-1").start(Watch(thread="other", deadline=30), delay=60)
        await clock.advance(60.0)
        await first_look(mt.thread("conv-1"), watch.id)
        await clock.advance(20.0)
    async with Meantime.open(ledger, clock=clock) as mt:
        thread = mt.thread("conv-1")
        await clock.advance(9.0)
        assert (await thread.get(watch.id)).status == "running"
        await clock.advance(1.0)
        assert await told(thread, watch.id, 1) == [("ending", "nothing matched until the deadline")]


@pytest.mark.breadth
async def test_new_is_what_is_printed_after_its_start(tmp_path: Path):
    clock = FakeClock()
    async with Meantime.open(tmp_path / "work.db", clock=clock, settings=EACH) as mt:
        thread = mt.thread("conv-1")
        server = await thread.start(Shell("while read line; do echo ERROR $line; done", open_stdin=True))
        watch = await thread.start(Watch(log=server, match="ERROR", new=True), delay=60)
        await thread.send(server, "before\n")

        async def has_printed() -> bool:
            return "before" in (await thread.output(server)).text

        await until_async(has_printed, "it has printed")
        await clock.advance(60.0)
        await first_look(thread, watch.id)
        await thread.send(server, "after\n")
        assert await told(thread, watch.id, 1) == [("event", "ERROR after")]
        await thread.send(server, "", eof=True)
        assert await told(thread, watch.id, 1) == [("ending", "matched once until its task ended")]
