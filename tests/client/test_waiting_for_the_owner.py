"""A process may connect before the owner is there: it waits as long as it is told to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import LIMIT, stays_async

from meantime import Call, Disconnected, InvalidInput, Meantime, blocking

pytestmark = pytest.mark.anyio


async def test_a_connection_that_begins_before_the_owner_is_there(tmp_path: Path):
    async def connected() -> int:
        async with Meantime.connect(tmp_path / "link", patience=LIMIT) as mt:
            return await (await mt.thread("conv-1").start(Call(int, "7"))).result(LIMIT)

    early = asyncio.ensure_future(connected())
    await stays_async(lambda: not early.done(), "it waits for the owner", 0.1)
    async with Meantime.open(":memory:", link=tmp_path / "link"):
        assert await early == 7


async def test_a_file_that_nobody_listens_at_yet_is_waited_for_as_well(tmp_path: Path):
    async with Meantime.open(":memory:", link=tmp_path / "link"):
        pass
    (tmp_path / "link").touch()
    early = asyncio.ensure_future(Meantime.connect(tmp_path / "link", patience=LIMIT)._open())
    await stays_async(lambda: not early.done(), "it waits for the owner", 0.1)
    (tmp_path / "link").unlink()
    async with Meantime.open(":memory:", link=tmp_path / "link"):
        await (await early).close()


@pytest.mark.parametrize(
    ("patience", "said"), [(0, "link: No such file"), (0.2, r"link within 0\.2 s: No such")]
)
async def test_the_end_of_patience_says_where_and_how_long(tmp_path: Path, patience: float, said: str):
    with pytest.raises(Disconnected, match=f"Nobody answers at .*{said}") as caught:
        await Meantime.connect(tmp_path / "link", patience=patience)
    assert "patience" in caught.value.hint


def test_a_blocking_one_waits_too(tmp_path: Path):
    with pytest.raises(Disconnected, match=r"within 0\.1 s"):
        blocking.Meantime.connect(tmp_path / "link", patience=0.1)


async def test_a_cancelled_wait_ends(tmp_path: Path):
    waiting = asyncio.ensure_future(Meantime.connect(tmp_path / "link", patience=LIMIT)._open())
    await stays_async(lambda: not waiting.done(), "it waits for the owner", 0.05)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("patience", [-1, float("nan"), float("inf"), "long", None])
async def test_patience_that_makes_no_sense_is_refused(tmp_path: Path, patience: float):
    with pytest.raises(InvalidInput):
        Meantime.connect(tmp_path / "link", patience=patience)
