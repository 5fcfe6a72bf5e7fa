"""Notices ride on results, and are settled only when the client is known to have them (P5, class C)."""

from __future__ import annotations

import asyncio

import pytest
from mcp import Client
from tests.waiting import LIMIT, until_async

from meantime import Meantime, Shell
from meantime.dialects.meantime.meantime_arguments import LONGEST_WAIT
from meantime.surfaces.mcp import notice_delivery

from .conftest import Direct, id_in, notices, texts

pytestmark = pytest.mark.anyio


async def ended(mt: Meantime, id: str, thread: str = "conv-1", command: str = "echo done") -> str:
    """A task of the conversation that has ended; the id of its notice."""
    await (await mt.thread(thread).start(Shell(command), id=id)).wait()
    return f"{id}.1"


async def unread(mt: Meantime) -> list[str]:
    return [notice.id for notice in await mt.notices("unread", "leased", thread="conv-1")]


async def look(client: Client) -> list[str]:
    """The notices on a result that is about something else."""
    result = await client.call_tool("list", {})
    shown = [text for text in texts(result)[1:] if "<task-notification id=" in text]
    assert len(shown) == len(notices(result))
    return notices(result)


async def test_they_come_in_order_after_the_result_and_once(client: Client, mt: Meantime):
    first, second = await ended(mt, "one"), await ended(mt, "two")
    result = await client.call_tool("list", {})
    assert texts(result)[0] == "Nothing runs."
    assert notices(result) == [first, second]
    assert 'id="one.1"' in texts(result)[1]
    assert "Untrusted output:" in texts(result)[1]
    assert await unread(mt) == [first, second]  # nobody knows yet whether the client has it
    assert await look(client) == []  # it calls again, so it has it
    assert await unread(mt) == []


async def test_another_conversations_are_not_told(client: Client, mt: Meantime):
    await ended(mt, "theirs", thread="other")
    assert await look(client) == []


async def test_what_the_agent_read_itself_is_not_told_again(client: Client, mt: Meantime):
    id = id_in(await client.call_tool("start", {"command": "echo done"}))
    result = await client.call_tool("wait", {"seconds": LONGEST_WAIT})
    assert len(texts(result)) == 1
    assert notices(result) == [f"{id}.1"]
    assert await look(client) == []
    assert await unread(mt) == []


async def test_calls_at_once_prove_nothing(client: Client, direct: Direct, mt: Meantime):
    """A model that calls two tools at once has read the answer to neither when it calls."""
    await client.call_tool("wait", {"ids": [], "seconds": LONGEST_WAIT})  # nothing runs, so it does not wait
    handle = await mt.thread("conv-1").start(Shell("sleep 600"), id="slow")
    waiting = asyncio.create_task(client.call_tool("wait", {"seconds": LONGEST_WAIT}))
    await until_async(lambda: direct.held.inbox._calls == 1, "the client waits")
    notice = await ended(mt, "one")
    assert await look(client) == [notice]
    assert await look(client) == []
    assert notice in await unread(mt)  # leased to the first answer, and not settled by the second call
    await handle.cancel()
    await waiting
    await client.call_tool("list", {})
    assert notice not in await unread(mt)


async def test_an_answer_that_never_got_out_is_told_again(client: Client, direct: Direct, mt: Meantime):
    direct.arrives = False
    notice = await ended(mt, "one")
    assert await look(client) == [notice]
    assert await look(client) == []  # still on its way, as far as we know
    direct.held.inbox.give_back(direct.rides[0])
    direct.arrives = True
    await until_async(lambda: _is(_unleased(mt), [notice]), "the notice is given back")
    result = await client.call_tool("list", {})
    assert notices(result) == [notice]
    assert texts(result)[1].startswith("You may have been told this before")


async def _is(asked: object, expected: object) -> bool:
    return await asked == expected  # type: ignore[misc]


async def test_a_client_that_has_taken_its_answer_need_not_call_again(
    client: Client, direct: Direct, mt: Meantime, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(notice_delivery, "SETTLE", 0.02)
    direct.taken = False
    await ended(mt, "one")
    await look(client)
    assert await look(client) == []
    assert await unread(mt) == ["one.1"]  # it lies in the pipe, whatever the client sent meanwhile
    direct.taken = True
    await until_async(lambda: _is(unread(mt), []), "all are told")


async def test_nobody_is_busy_for_ever(
    client: Client, direct: Direct, mt: Meantime, monkeypatch: pytest.MonkeyPatch
):
    """After a while an answer that was not heard of no longer keeps others from being woken; the same
    client is not told again all the same, for its next call says that it has it."""
    monkeypatch.setattr(notice_delivery, "SETTLE", 0.01)
    monkeypatch.setattr(notice_delivery, "HOLD", 0.03)
    notice = await ended(mt, "one")
    assert await look(client) == [notice]
    async with asyncio.timeout(LIMIT):
        await mt._runtime.wait_wake("conv-1", -1)
    assert await unread(mt) == [notice]
    assert await look(client) == []
    await until_async(lambda: _is(unread(mt), []), "all are told")


async def test_a_client_that_goes_away_leaves_them(direct: Direct, era: str, mt: Meantime):
    async with Client(direct.door.server, mode=era) as client:
        notice = await ended(mt, "one")
        assert await look(client) == [notice]
    await direct.held.close()
    next_one = Direct(mt)
    async with Client(next_one.door.server, mode=era) as client:
        assert await look(client) == [notice]
        assert await look(client) == []
    assert await unread(mt) == []


async def test_a_call_that_is_cancelled_loses_nothing(direct: Direct, mt: Meantime):
    notice = await ended(mt, "one")
    for turns in range(8):
        boarding = asyncio.create_task(direct.held.inbox.ride(()))
        for _ in range(turns):
            await asyncio.sleep(0)
        boarding.cancel()
        await asyncio.wait([boarding])
        if not boarding.cancelled():
            direct.held.inbox.give_back(boarding.result())  # pyright: ignore[reportArgumentType]
        await until_async(lambda: _is(_unleased(mt), [notice]), "the notice is given back")


async def _unleased(mt: Meantime) -> list[str]:
    return [notice.id for notice in await mt.notices("unread", thread="conv-1")]


async def test_a_result_carries_only_so_much(client: Client, mt: Meantime):
    big = f"head -c {notice_delivery.MOST_CHARACTERS // 2} /dev/zero | tr '\\0' x"
    for number in range(3):
        await ended(mt, f"big-{number}", command=big)
    result = await client.call_tool("list", {})
    assert notices(result) == ["big-0.1"]
    assert texts(result)[-1] == "2 more notices come with your next call."
    assert notices(await client.call_tool("list", {})) == ["big-1.1"]
    assert notices(await client.call_tool("list", {})) == ["big-2.1"]
    assert notices(await client.call_tool("list", {})) == []


@pytest.mark.breadth
async def test_many_come_a_few_at_a_time(client: Client, mt: Meantime):
    for number in range(notice_delivery.MOST + 1):
        await ended(mt, f"many-{number:02}", command="true")
    assert len(await look(client)) == notice_delivery.MOST
    assert await look(client) == [f"many-{notice_delivery.MOST}.1"]


async def test_a_lost_turn_is_not_told_twice_to_the_same_client(client: Client, direct: Direct, mt: Meantime):
    """The owner of the ledger was restarted between the answer and the next call."""
    notice = await ended(mt, "one")
    assert await look(client) == [notice]
    await mt._runtime.close_turn(direct.rides[0].turn, failed=False)
    assert await look(client) == []
    await until_async(lambda: _is(unread(mt), []), "all are told")
