"""`wait` without ids: for all that the conversation expects an ending of, also where it has just ended."""

from __future__ import annotations

import pytest
from mcp import Client
from tests.waiting import until_async

from meantime import Meantime, Shell
from meantime.surfaces.mcp import notice_delivery

from .conftest import Direct, notices, texts

pytestmark = pytest.mark.anyio
NOTHING = ["Nothing runs, so there is nothing to wait for."]


async def ended(mt: Meantime, id: str, thread: str = "conv-1") -> None:
    await (await mt.thread(thread).start(Shell(f"echo said by {id}"), id=id)).wait()


async def test_an_ending_that_nobody_was_told_of_is_waited_for(client: Client, mt: Meantime):
    await ended(mt, "one")
    await ended(mt, "theirs", "conv-2")

    said = await client.call_tool("wait", {"seconds": 0})

    assert len(texts(said)) == 1
    assert 'id="one.1"' in texts(said)[0]
    assert "said by one" in texts(said)[0]
    assert notices(said) == ["one.1"]
    assert texts(await client.call_tool("wait", {"seconds": 0})) == NOTHING
    assert await mt.notices(thread="conv-1") == []


async def test_a_wait_for_any_ends_with_what_has_just_ended(client: Client, mt: Meantime):
    slow = await mt.thread("conv-1").start(Shell("sleep 600"), id="slow")
    await ended(mt, "quick")

    (said,) = texts(await client.call_tool("wait", {"until": "any"}))

    assert 'id="quick.1"' in said
    assert "slow: " in said
    await slow.cancel()


async def test_an_ending_that_was_shown_before_is_not_waited_for(
    client: Client, direct: Direct, mt: Meantime, monkeypatch: pytest.MonkeyPatch
):
    """Nobody has acknowledged it yet, so its notice is unread again."""
    monkeypatch.setattr(notice_delivery, "SETTLE", 0.01)
    monkeypatch.setattr(notice_delivery, "HOLD", 0.03)
    await ended(mt, "one")
    assert notices(await client.call_tool("list", {})) == ["one.1"]

    async def is_unread() -> bool:
        return bool(await mt.notices("unread", thread="conv-1"))

    await until_async(is_unread, "the notice is given back")
    assert texts(await client.call_tool("wait", {"seconds": 0})) == NOTHING
