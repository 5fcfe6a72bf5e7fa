"""GET /v1/events?format=patches: the one stream of a page."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, Context, HttpDoor, Meantime, Thread, current
from meantime.surfaces.http import snapshot
from meantime.surfaces.http.event_ring import Delta, Ring
from meantime.surfaces.http.row_patch import Patch
from meantime.testing import FakeClock
from runtimes import runtime_of

from .asking import asking
from .conftest import OpenDoor
from .listening import Listener, Said

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]
PATCHES = "/v1/events?format=patches"


async def forever() -> None:
    await asyncio.Event().wait()


def ids(said: Said) -> list[str]:
    return [row["id"] for row in said.data["rows"]]


async def hear_until(stream: Listener, clock: FakeClock, wanted: Any) -> Said:
    """The first event that fits; the clock goes on meanwhile, so that the feed looks again."""
    hearing = asyncio.ensure_future(stream.hear())

    async def fits() -> bool:
        nonlocal hearing
        if not hearing.done():
            await clock.advance(0.5)
        elif wanted(hearing.result()):
            return True
        else:
            hearing = asyncio.ensure_future(stream.hear())
        return False

    await until_async(fits, "the event comes")
    return hearing.result()


async def test_a_snapshot_then_patches(door: HttpDoor, thread: Thread):
    await thread.start(Call(forever), id="busy")
    async with Listener(door, PATCHES) as stream:
        first = await stream.hear()
        assert (first.event, ids(first), first.data["bounded"]) == ("snapshot", ["busy"], True)
        assert first.data["overview"]["counts"]["running"] == 1
        assert first.id == str(first.data["seq"])
        await thread.cancel("busy", wait=True)
        said = await stream.hear()
        assert (said.event, ids(said)) == ("patch", ["busy"])
        assert said.data["rows"][0]["state"] in ("cancelling", "cancelled")
        assert int(said.id or 0) > int(first.id or 0)


async def test_a_snapshot_is_bounded(door: HttpDoor, thread: Thread, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(snapshot, "BOUNDED", 5)
    monkeypatch.setattr(snapshot, "MOST_ACTIVE", 3)
    for number in range(4):
        await thread.start(Call(forever), id=f"busy{number}")
    for number in range(9):
        await (await thread.start(Call(int, "1"), id=f"n{number}")).wait()
    async with Listener(door, PATCHES) as stream:
        assert ids(await stream.hear()) == ["n8", "n7", "n6", "n5", "n4", "busy3", "busy2", "busy1"]


async def test_a_snapshot_has_what_runs_however_many_newer_tasks_are_queued(
    mt: Meantime, door: HttpDoor, thread: Thread, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(snapshot, "BOUNDED", 1)
    monkeypatch.setattr(snapshot, "MOST_ACTIVE", 3)
    await mt.set_limits(total=1)
    for number in range(6):
        await thread.start(Call(forever), id=f"t{number}")
    async with Listener(door, PATCHES) as stream:
        assert ids(await stream.hear()) == ["t5", "t0", "t4"]


async def test_changes_that_come_together_are_one_patch(
    open_door: OpenDoor, thread: Thread, clock: FakeClock
):
    door = await open_door(batch=0.1)
    contexts: list[Context] = []

    async def work() -> None:
        contexts.append(current())
        await forever()

    async with Listener(door, PATCHES) as stream:
        await stream.hear()
        await thread.start(Call(work), id="busy")
        assert ids(await stream.hear()) == ["busy"]
        for percent in range(50):
            contexts[0].progress(percent)
        for number in range(20):
            await thread.start(Call(int, "1"), id=f"n{number}")
        said = await hear_until(stream, clock, lambda said: "n19" in ids(said))
    assert len(ids(said)) == len(set(ids(said))) >= 20  # each row once, as it is now


async def test_a_cleared_or_deleted_task_is_gone(
    door: HttpDoor, thread: Thread, mt: Meantime, clock: FakeClock
):
    await (await thread.start(Call(int, "1"), id="one")).wait()
    await (await thread.start(Call(int, "1"), id="two")).wait()
    async with Listener(door, PATCHES) as stream:
        assert ids(await stream.hear()) == ["two", "one"]
        await thread.clear("one")
        assert (await stream.hear()).data["gone"] == ["one"]
        await mt.purge("two")
        said = await hear_until(stream, clock, lambda said: said.data.get("gone"))
        assert said.data["gone"] == ["two"]


async def test_a_delivery_shows_without_an_event(door: HttpDoor, thread: Thread, clock: FakeClock):
    await (await thread.start(Call(int, "1"), id="one")).wait()
    async with Listener(door, PATCHES) as stream:
        assert (await stream.hear()).data["rows"][0]["delivery"]["state"] == "unread"
        async with thread.turn() as turn:
            await turn.ack()
        said = await hear_until(stream, clock, lambda said: ids(said) == ["one"])
        assert said.data["rows"][0]["delivery"]["state"] == "told"


async def test_a_stream_goes_on_where_it_was_cut_off(door: HttpDoor, thread: Thread):
    async with Listener(door, PATCHES) as stream:
        first = await stream.hear()
    await (await thread.start(Call(int, "1"), id="missed")).wait()
    async with Listener(door, PATCHES, Last_Event_ID=str(first.id)) as stream:
        said = await stream.hear()
        assert (said.event, ids(said)) == ("patch", ["missed"])
        assert said.data["overview"]["counts"]["completed"] == 1


@pytest.mark.parametrize("seen", ["1", "999999"])
async def test_one_who_comes_too_late_starts_again(door: HttpDoor, thread: Thread, mt: Meantime, seen: str):
    for _ in range(5):
        await (await thread.start(Call(int, "1"))).wait()
    runtime_of(mt).store._journal.trim(3)  # pyright: ignore[reportAttributeAccessIssue]
    async with Listener(door, PATCHES, Last_Event_ID=seen) as stream:
        said, whole = await stream.hear(), await stream.hear()
    assert (said.event, said.data["reason"]) == ("resync", "too_old")
    assert (whole.event, len(whole.data["rows"])) == ("snapshot", 5)


async def test_a_slow_reader_starts_again(open_door: OpenDoor):
    """It holds up nobody, and nothing is kept for it."""
    door = await open_door(backlog=4, stall_seconds=10_000.0)
    ring = door._serving._app.patches.ring
    async with Listener(door, PATCHES) as slow, Listener(door, PATCHES) as quick:
        await slow.hear()
        await quick.hear()
        slow.reader._transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        for _ in range(150):  # 15 MB: more than the buffers of a connection hold
            ring.publish(Patch.of(1, (), (), b'"' + b"x" * 100_000 + b'"'))
            assert (await quick.hear()).event == "patch"
        slow.reader._transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue]
        async with asyncio.timeout(LIMIT):
            while (said := await slow.hear()).event != "resync":
                assert said.event == "patch"
        assert said.data["reason"] == "slow"
        assert (await slow.hear()).event == "snapshot"


async def test_silence_has_a_heartbeat(door: HttpDoor, clock: FakeClock):
    async with Listener(door, PATCHES) as stream:
        await stream.hear()
        said = await hear_until(stream, clock, lambda said: said.event == "heartbeat")
        assert said.data["ts"]


async def test_a_page_sees_only_what_it_asks_for(door: HttpDoor, thread: Thread, mt: Meantime):
    await thread.start(Call(forever), id="mine", batch="b-1")
    await mt.thread("other").start(Call(forever), id="theirs")
    token = {"Authorization": f"Bearer {door.thread_token('conv-1')}"}
    async with (
        Listener(door, PATCHES, **token) as bound,
        Listener(door, f"{PATCHES}&thread=conv-1") as chosen,
        Listener(door, f"{PATCHES}&batch=b-1") as batch,
    ):
        streams = (bound, chosen, batch)
        assert [ids(await stream.hear()) for stream in streams] == [["mine"]] * 3
        await mt.thread("other").cancel("theirs", wait=True)
        await thread.cancel("mine", wait=True)
        for stream in streams:
            while (said := await stream.hear()).data["rows"] == []:
                assert stream is not bound, "a thread's token is told nothing of others"
            assert ids(said) == ["mine"]


async def test_twelve_pages_are_told_the_same(door: HttpDoor, thread: Thread):
    async with AsyncExitStack() as stack:
        pages = [await stack.enter_async_context(Listener(door, PATCHES)) for _ in range(12)]
        for page in pages:
            await page.hear()
        await thread.start(Call(forever), id="busy")
        said = [await page.hear() for page in pages]
        assert {(one.event, one.id, *ids(one)) for one in said} == {("patch", said[0].id, "busy")}


async def test_streams_of_both_formats_share_a_limit(open_door: OpenDoor):
    door = await open_door(clients=2)
    async with Listener(door, PATCHES) as one, Listener(door) as two:
        await one.hear()
        await two.hear()
        refused = await asking(door, PATCHES)
        assert (refused.status, b"too_many_streams" in refused.body) == (503, True)


def test_a_ring_keeps_no_more_bytes_than_it_may(clock: FakeClock):
    ring: Ring[Delta] = Ring(100, clock, most_bytes=50)
    for number in range(10):
        ring.publish(Delta(number, "t", "a", "", b"x" * 20))
    assert ring.after(8) is not None
    assert ring.after(7) is None
    ring.publish(Delta(10, "t", "a", "", b"x" * 500))
    assert [len(one.frame) for one in ring.after(10) or ()] == [500]  # the newest is always kept
