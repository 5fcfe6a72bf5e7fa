"""A watch outlives its owner: it goes on from its cursor, and what was printed meanwhile is found."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Meantime, NoticeRate, Settings, Shell, Watch
from meantime.kernel.watches import cursor_of
from meantime.testing import FakeClock

from .told import told

pytestmark = pytest.mark.anyio

KEEP = Settings(stop_grace=0.5, notices=NoticeRate(0.0, 1_000_000), reconcile_every=0.2)


def waiting_for(gate: Path, then: str) -> Shell:
    return Shell(f"echo ERROR before; while [ ! -e {gate} ]; do sleep 0.02; done; {then}")


async def test_lines_that_were_printed_without_an_owner_are_found(tmp_path: Path):
    ledger, gate, done = tmp_path / "work.db", tmp_path / "gate", tmp_path / "done"
    async with Meantime.open(ledger, settings=KEEP) as mt:
        thread = mt.thread("conv-1")
        server = await thread.start(waiting_for(gate, f"echo ERROR alone; touch {done}; exec sleep 600"))
        watch = await thread.start(Watch(log=server, match="ERROR"))
        assert await told(thread, watch.id, 1) == [("event", "ERROR before")]
    gate.touch()
    await until_async(done.exists, "the command has printed")
    async with Meantime.open(ledger, settings=KEEP) as mt:
        thread = mt.thread("conv-1")
        assert await told(thread, watch.id, 1) == [("event", "ERROR alone")]
        await mt.thread("conv-1").cancel(server.id, wait=True)
        assert await told(thread, watch.id, 1) == [("ending", "matched 2 times until its task ended")]


async def test_a_task_that_ended_without_an_owner_is_searched_to_its_end(tmp_path: Path):
    ledger, gate, done = tmp_path / "work.db", tmp_path / "gate", tmp_path / "done"
    async with Meantime.open(ledger, settings=KEEP) as mt:
        thread = mt.thread("conv-1")
        server = await thread.start(waiting_for(gate, f"echo ERROR last; touch {done}"))
        watch = await thread.start(Watch(log=server, match="last", once=True))
    gate.touch()
    await until_async(done.exists, "the command has printed")
    async with Meantime.open(ledger, settings=KEEP) as mt:
        assert await told(mt.thread("conv-1"), watch.id, 1) == [("ending", "matched once\nERROR last")]


async def test_a_close_keeps_how_far_was_searched(tmp_path: Path):
    """Otherwise the next owner would take for unsearched what has been dropped since."""
    ledger = tmp_path / "work.db"
    async with Meantime.open(ledger, settings=KEEP) as mt:
        thread = mt.thread("conv-1")
        server = await thread.start(Shell("seq 1 100; exec sleep 600"))
        watch = await thread.start(Watch(log=server, match="nothing"))
        await server.log.tail(1)
        seen = await told_total(mt, server.id)
    async with Meantime.open(ledger, settings=KEEP) as mt:
        cursor = cursor_of(await mt.thread("conv-1").get(watch.id))
        assert cursor is not None
        assert cursor.at == seen
        await mt.thread("conv-1").cancel(server.id, wait=True)


async def told_total(mt: Meantime, id: str) -> int:
    """The size of the output, once the watch must have read it."""
    thread = mt.thread("conv-1")
    witness = await thread.start(Watch(log=id, match="^100$", once=True))
    await witness.wait(LIMIT)
    return (await thread.log(id).read()).total


async def test_a_deadline_that_passed_without_an_owner_ends_the_watch(tmp_path: Path):
    ledger, clock = tmp_path / "work.db", FakeClock()
    async with Meantime.open(ledger, settings=KEEP, clock=clock) as mt:
        thread = mt.thread("conv-1")
        server = await thread.start(Shell("echo ERROR; exec sleep 600"))
        watch = await thread.start(Watch(log=server, match="nothing", deadline=60))
    await clock.advance(61)
    async with Meantime.open(ledger, settings=KEEP, clock=clock) as mt:
        thread = mt.thread("conv-1")
        await clock.advance(1)
        await thread.wait(watch)
        assert await mt.thread("conv-1").result(watch.id) == "nothing matched until the deadline"
        await thread.cancel(server.id, wait=True)


@pytest.mark.parametrize("jump", [-366 * 86_400.0, 366 * 86_400.0])
async def test_a_jump_of_the_wall_clock_neither_ends_a_watch_nor_holds_back_a_match(ledger: str, jump: float):
    clock = FakeClock()
    async with Meantime.open(ledger, settings=KEEP, clock=clock) as mt:
        thread = mt.thread("conv-1")
        server = await thread.start(Shell("cat", open_stdin=True))
        watch = await thread.start(Watch(log=server, match="ERROR", deadline=3_600))
        await server.send("ERROR 1\n")
        assert await told(thread, watch.id, 1) == [("event", "ERROR 1")]
        clock.jump(jump)
        await server.send("ERROR 2\n")
        assert await told(thread, watch.id, 1) == [("event", "ERROR 2")]
        assert not (await watch.get()).ended
        await thread.cancel(server.id, wait=True)


async def test_a_copy_of_a_ledger_does_not_go_on_with_the_watches_of_the_original(tmp_path: Path):
    ledger, copy = tmp_path / "work.db", tmp_path / "copy.db"
    async with Meantime.open(ledger, settings=KEEP) as mt:
        thread = mt.thread("conv-1")
        server = await thread.start(Shell("exec sleep 600"))
        watch = await thread.start(Watch(log=server, match="ERROR"))
    shutil.copy(ledger, copy)
    async with Meantime.open(copy, settings=KEEP) as mt:
        assert (await mt.thread("conv-1").get(watch.id)).status == "lost"
    async with Meantime.open(ledger, settings=KEEP) as mt:
        assert (await mt.thread("conv-1").get(watch.id)).status == "running"
        await mt.thread("conv-1").cancel(server.id, wait=True)
