"""Hosts of connected processes: told in their own process, known to the owner."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from tests.waiting import until_async

from meantime import Call, Meantime
from meantime.client.client import Client
from meantime.testing import FakeHost

pytestmark = pytest.mark.anyio


def grades(owner: Meantime) -> list[tuple[str, str, str]]:
    return [(host.thread, host.grade, host.kind) for host in owner._owner.about().hosts]


@pytest.mark.behaviour("H15")
async def test_the_owner_knows_what_each_connected_host_can_promise(tmp_path: Path) -> None:
    """Also the next owner; and not of one that was detached."""
    owner = await Meantime.open(tmp_path / "work.db", link=tmp_path / "link")
    async with Meantime.connect(tmp_path / "link") as mt:
        host = FakeHost()
        mt.attach("conv-1", host)
        await (await mt.thread("conv-1").start(Call(abs, -1))).wait()
        assert grades(owner) == [("conv-1", host.delivery.grade, "FakeHost")]
        await owner.close()
        async with Meantime.open(tmp_path / "work.db", link=tmp_path / "link") as owner:
            await until_async(lambda: grades(owner), "it has come back")
            mt.detach("conv-1")
            await mt.stats()
            assert grades(owner) == []


@pytest.mark.behaviour("H15")
async def test_the_owner_forgets_conversations_that_are_not_named_again(tmp_path: Path) -> None:
    async with (
        Meantime.open(tmp_path / "work.db", link=tmp_path / "link") as owner,
        Meantime.connect(tmp_path / "link") as mt,
    ):
        client = cast("Client", mt.thread("conv-1")._tasks)
        for threads in (["conv-1", "conv-2"], ["conv-2", "conv-3"], []):
            client.serves(threads, grade="C", kind="mcp")
            await mt.stats()
            assert grades(owner) == [(thread, "C", "mcp") for thread in threads]
