"""A client that knows its inbox to be empty opens no turn in vain, and is told nothing later for it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from tests.waiting import LIMIT, pause_async, until_async

from meantime import Call, Meantime
from meantime.kernel.errors import MeantimeError
from meantime.link.frames import PROTOCOL, Frame, Hello
from meantime.surfaces.mcp.notice_delivery import NoticeDelivery
from meantime.surfaces.socket import empty_inboxes
from runtimes import runtime_of

from .pair import Pair

pytestmark = pytest.mark.anyio
SEED = 20_261_117


async def turn(tasks: Any, thread: str = "conv-1") -> list[str]:
    """The notices of a turn that acknowledges nothing."""
    opened = await tasks.open_turn(thread, lease=None, limit=20)
    await tasks.close_turn(opened.id, failed=False)
    return [notice.id for notice in opened.notices]


async def ends(mt: Meantime, id: str, thread: str = "conv-1") -> None:
    await (await mt.thread(thread).start(Call(abs, -1), id=id)).wait()


def known(pair: Pair, thread: str = "conv-1") -> bool:
    return pair.client.has_empty_inbox(thread)


async def asked_something(pair: Pair) -> None:
    """An answer: whatever the owner said before it is here."""
    await pair.mt.stats()


async def test_a_turn_that_finds_nothing_makes_it_known_and_an_ending_takes_it_back(pair: Pair):
    assert not known(pair), "nobody has looked yet"
    assert await turn(pair.client) == []
    assert known(pair)
    assert not known(pair, "conv-2")
    await ends(pair.owner, "other", "conv-2")
    await asked_something(pair)
    assert known(pair)
    await ends(pair.owner, "one")
    await asked_something(pair)
    assert not known(pair)
    assert await turn(pair.client) == ["one.1"]
    assert not known(pair), "a turn that found something says nothing about the next"


async def test_an_ending_is_known_before_the_answer_that_tells_of_it(pair: Pair):
    await turn(pair.client)
    for count in range(20):
        handle = await pair.mt.thread("conv-1").start(Call(abs, -1), id=f"t{count}", notify=count == 19)
        await handle.wait()
        assert known(pair) is (count < 19)


async def test_what_another_client_gives_back_is_known(pair: Pair):
    await ends(pair.owner, "one")
    async with Meantime.connect(pair.link) as other:
        opened = await other._runtime.open_turn("conv-1", lease=None, limit=20)
        assert [notice.id for notice in opened.notices] == ["one.1"]
        assert await turn(pair.client) == []
        assert known(pair), "another client holds it"
        await other._runtime.close_turn(opened.id, failed=False)
        await asked_something(pair)
        assert not known(pair)


async def test_what_another_client_acknowledges_is_asked_for_once_more(pair: Pair):
    await turn(pair.client)
    await ends(pair.owner, "one")
    opened = await pair.owner._runtime.open_turn("conv-1", lease=None, limit=20)
    await pair.owner._runtime.ack(opened.id, ["one.1"], ())
    await asked_something(pair)
    assert not known(pair)
    assert await turn(pair.client) == []
    assert known(pair)


async def test_what_is_unparked_is_known(pair: Pair):
    await ends(pair.owner, "one")
    for _ in range(5):
        opened = await pair.owner._runtime.open_turn("conv-1", lease=None, limit=20)
        await pair.owner._runtime.close_turn(opened.id, failed=True)
    assert await turn(pair.client) == [], "it is parked"
    assert known(pair)
    await pair.owner.thread("conv-1").unpark()
    await asked_something(pair)
    assert not known(pair)


async def test_what_the_reconciler_finds_is_known(pair: Pair):
    await ends(pair.owner, "one")
    waking = runtime_of(pair.owner).waking
    waking.count("conv-1", -1)  # a wrong count, as it would be after a defect of our own
    assert await turn(pair.client) == []
    assert known(pair)
    await waking.reconcile()
    await asked_something(pair)
    assert not known(pair)


async def test_a_new_connection_knows_nothing(pair: Pair):
    await turn(pair.client)
    await pair.cut_and_back()
    assert not known(pair)
    await turn(pair.client)
    assert known(pair)
    await pair.cut_and_back()
    await until_async(lambda: not pair.executors.inboxes._threads, "nothing is kept of the lost connection")
    assert pair.executors.inboxes._wires == {}, "nothing is kept of a lost connection"


async def test_nothing_is_known_without_an_owner_nor_of_the_next_one(pair: Pair):
    await turn(pair.client)
    await pair.owner.close()
    await until_async(lambda: not pair.is_up(), "the connection is lost")
    assert not known(pair)
    await pair.open_owner()
    await asked_something(pair)
    assert not known(pair)


async def test_a_connection_knows_a_limited_number_of_empty_inboxes(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(empty_inboxes, "MOST", 3)
    for count in range(5):
        await turn(pair.client, f"conv-{count}")
    await asked_something(pair)
    assert [known(pair, f"conv-{count}") for count in range(5)] == [False, False, True, True, True]
    assert len(pair.executors.inboxes._wires) == 3


async def test_an_embedded_owner_opens_its_turns(pair: Pair):
    runtime = pair.owner._runtime
    assert await turn(runtime) == []
    assert not runtime.has_empty_inbox("conv-1")


# -- two versions on one link


async def test_an_older_client_is_sent_no_frame_that_it_does_not_know(pair: Pair):
    reader, writer = await asyncio.open_unix_connection(pair.link)
    hello = msgspec.json.encode(Hello(PROTOCOL, "0", "x_old", []))
    older = msgspec.json.decode(hello)[:-1]
    assert len(older) == 5, "as it was before there was a field more"
    arguments = {"thread": "conv-1", "lease": None, "limit": 20}
    for said in (older, ["ask", 1, "open_turn", arguments]):
        writer.write(msgspec.json.encode(said) + b"\n")
    tags = [await _tag(reader) for _ in range(2)]
    await ends(pair.owner, "one")
    writer.write(msgspec.json.encode(["ask", 2, "stats", {}]) + b"\n")
    tags.append(await _tag(reader))
    assert tags == ["welcome", "answered", "answered"]
    writer.close()


async def _tag(reader: asyncio.StreamReader) -> str:
    async with asyncio.timeout(LIMIT):
        return msgspec.json.decode(await reader.readline())[0]


class OlderHello(Frame, frozen=True, tag="hello"):
    protocol: int
    version: str
    executor: str
    turns: list[str]


async def test_an_older_owner_reads_the_hello_of_today():
    said = msgspec.json.encode(Hello(PROTOCOL, "1", "x_1", ["turn_1"], wants_inbox=True))
    assert msgspec.json.decode(said, type=OlderHello) == OlderHello(PROTOCOL, "1", "x_1", ["turn_1"])


async def test_an_owner_that_says_nothing_is_asked_each_time(pair: Pair):
    pair.executors.inboxes.tell_empty = lambda thread, wire: None  # as an older owner does
    inbox = NoticeDelivery(pair.client, "conv-1")
    async with counted(pair) as turns:
        for _ in range(3):
            assert await inbox.ride(()) is None
    assert turns == ["conv-1"] * 3
    await inbox.close()


# -- what a result takes along


@asynccontextmanager
async def counted(pair: Pair) -> AsyncIterator[list[str]]:
    """The threads whose turns the owner is asked for."""
    asked: list[str] = []
    announcing = runtime_of(pair.owner).announcing
    was = announcing.open_turn

    async def open_turn(thread: str, **more: Any) -> Any:
        asked.append(thread)
        return await was(thread, **more)

    announcing.open_turn = open_turn
    try:
        yield asked
    finally:
        announcing.open_turn = was


async def test_a_result_opens_a_turn_only_where_there_may_be_something(pair: Pair):
    inbox = NoticeDelivery(pair.client, "conv-1")
    async with counted(pair) as turns:
        for _ in range(3):
            assert await inbox.ride(()) is None
        assert turns == ["conv-1"]
        assert await inbox.ride(["read.1"]) is None, "what a result read itself is settled"
        assert turns == ["conv-1"] * 2
        await ends(pair.mt, "one")
        ride = await inbox.ride(())
    assert ride is not None
    assert ride.told == ["one.1"]
    inbox.sent(ride)
    await inbox.begin()
    await inbox.close()


@pytest.mark.behaviour("P5")
async def test_each_ending_is_told_once_and_in_order_while_tasks_end_at_random(pair: Pair):
    """The outside record is the list of what the results took along."""
    dice = random.Random(SEED)
    inbox = NoticeDelivery(pair.client, "conv-1")
    told: list[str] = []
    handed: list[str] = []
    results = 0
    async with counted(pair) as turns:
        for count in range(120):
            await inbox.begin()
            if dice.random() < 0.3:
                where = dice.choice([pair.mt, pair.owner])
                await where.thread("conv-1").start(Call(asyncio.sleep, dice.random() / 100), id=f"t{count}")
                handed.append(f"t{count}.1")
            if dice.random() < 0.05:
                await pair.cut_and_back()
            had, ended = len(told), runtime_of(pair.owner).waking.unread("conv-1")
            await pair.mt.stats()
            await _take(inbox, told)
            assert len(told) - had >= ended, f"told later than with this result, seed {SEED}"
            results += 1
            inbox.end()
            await pause_async(dice.random() / 200, "tasks end at random moments")
        await pair.owner.thread("conv-1").wait()
        await pair.mt.stats()
        await inbox.begin()
        await _take(inbox, told)
        inbox.end()
    await inbox.begin()
    await inbox.close()
    order = [event.task_id for event in await pair.owner._runtime.events(0, 1_000) if _is_ending(event)]
    assert told == [f"{id}.1" for id in order], f"seed {SEED}"
    assert sorted(told) == sorted(handed)
    assert len(turns) < results, "some turns were not opened in vain"


async def _take(inbox: NoticeDelivery, told: list[str]) -> None:
    ride = await inbox.ride(())
    if ride is not None:
        told += ride.told
        inbox.sent(ride)


def _is_ending(event: Any) -> bool:
    return event.kind == "ended"


async def test_an_answer_that_does_not_come_is_told_again(pair: Pair):
    """A lease that the client gave back is known to be there, without a look in between."""
    inbox = NoticeDelivery(pair.client, "conv-1")
    assert await inbox.ride(()) is None
    await ends(pair.mt, "one")
    for _ in range(2):
        ride = await inbox.ride(())
        assert ride is not None
        assert ride.told == ["one.1"]
        inbox.give_back(ride)
        await until_async(lambda: not inbox._beside, "the lease was given back")
    with pytest.raises(MeantimeError):
        await pair.client.ack(ride.turn, ride.told, ())
    await inbox.close()
