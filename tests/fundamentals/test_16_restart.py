"""Lesson 16: the ledger outlives the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from meantime import Call, Lost, Meantime

pytestmark = pytest.mark.anyio

DIES = """
import asyncio, os, sys
from meantime import Call, Meantime

async def main():
    mt = await Meantime.open(sys.argv[1])
    thread = mt.thread("conv-1")
    await (await thread.start(Call(abs, -1), id="done")).wait()
    await thread.start(Call(asyncio.Event().wait), id="cut-off")
    os._exit(9)  # as a kill -9 would

asyncio.run(main())
"""


async def test_what_ended_before_the_end_is_told_after_it(tmp_path: Path):
    """Close, and open again, perhaps next week: what was not told is told now."""
    async with Meantime.open(tmp_path / "work.db") as mt:
        handle = await mt.thread("conv-1").start(Call(abs, -1))
        await handle.wait()

    async with Meantime.open(tmp_path / "work.db") as mt, mt.thread("conv-1").turn() as turn:
        assert [notice.task_id for notice in turn.notices] == [handle.id]
        await turn.ack()


@pytest.mark.behaviour("P3")
async def test_what_a_crash_cut_off_is_lost_and_told(tmp_path: Path):
    """A function dies with its process. Nobody can know how far it got, so it is not run again: it ends
    `lost`, and its thread is told so, once."""
    ledger = tmp_path / "work.db"
    died = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", DIES, str(ledger)], check=False)
    assert died.returncode == 9

    async with Meantime.open(ledger) as mt, mt.thread("conv-1").turn() as turn:
        assert [notice.task_id for notice in turn.notices] == ["done", "cut-off"]
        assert isinstance(turn.notices[1].outcome, Lost)
        await turn.ack()
