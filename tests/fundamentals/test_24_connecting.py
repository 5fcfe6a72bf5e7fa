"""Lesson 24: one process owns the ledger, others connect to it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Call, Disconnected, Lost, Meantime, Shell
from outcomes import completed

pytestmark = pytest.mark.anyio

DIES = """
import asyncio, os, sys
from meantime import Call, Meantime

async def main():
    mt = await Meantime.connect(sys.argv[1])
    await mt.thread("conv-1").start(Call(asyncio.Event().wait), id="cut-off")
    os._exit(9)  # as a kill -9 would

asyncio.run(main())
"""


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Meantime]:
    """`link` is a unix socket; only processes of the same user can connect. The daemon does the same."""
    async with Meantime.open(tmp_path / "work.db", link=tmp_path / "link") as owner:
        yield owner


async def test_what_is_opened_has_a_name_of_its_own(tmp_path: Path):
    """`open` and `connect` give what is entered, or awaited; the verbs are what comes of that."""
    opening = Meantime.open(tmp_path / "other.db")
    async with opening as mt:
        assert mt.thread("conv-1")
        with pytest.raises(AttributeError, match="use `async with … as mt` or `mt = await …`"):
            opening.thread("conv-1")  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match=r"has no attribute 'thraed'$"):
        opening.thraed("conv-1")  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.behaviour("H2")
async def test_the_verbs_are_the_same(owner: Meantime, tmp_path: Path):
    """A function runs in the process that hands it off, a command under the owner. Either way the
    conversation is in the ledger: whoever takes its next turn is told."""
    async with Meantime.connect(tmp_path / "link") as mt:
        thread = mt.thread("conv-1")
        answer = await (await thread.start(Call(sum, [1, 2, 3]))).result()
        said = await (await thread.start(Shell("echo hello"))).result()
    assert (answer, said) == (6, "hello\n")

    async with owner.thread("conv-1").turn() as turn:
        assert [completed(notice).result for notice in turn.notices] == [6, "hello\n"]
        await turn.ack()


async def test_what_a_process_leaves_behind(owner: Meantime, tmp_path: Path):
    """The functions of a process end with it. The owner sees that, and its thread is told: once."""
    died = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", DIES, str(tmp_path / "link")], check=False
    )
    assert died.returncode == 9
    await owner.thread("conv-1").wait("cut-off", timeout=LIMIT)
    async with owner.thread("conv-1").turn() as turn:
        assert [type(notice.outcome) for notice in turn.notices] == [Lost]
        await turn.ack()


async def test_an_owner_that_is_restarted_loses_nothing(tmp_path: Path):
    """The function goes on while nobody owns the ledger; the next owner hears how it ended."""
    gate = asyncio.Event()
    owner = await Meantime.open(tmp_path / "work.db", link=tmp_path / "link")
    async with Meantime.connect(tmp_path / "link") as mt:
        handle = await mt.thread("conv-1").start(Call(gate.wait))
        await owner.close()
        gate.set()
        async with Meantime.open(tmp_path / "work.db", link=tmp_path / "link"):
            assert await handle.result(timeout=LIMIT) is True


async def test_connecting_to_nobody_is_an_error(tmp_path: Path):
    """`Meantime.connect()` without a path connects to your daemon, and starts it where there is none."""
    with pytest.raises(Disconnected, match="Nobody answers"):
        await Meantime.connect(tmp_path / "link", patience=0)
