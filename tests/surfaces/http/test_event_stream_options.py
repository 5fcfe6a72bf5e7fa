"""GET /v1/events: what is ours beyond the seed, all of it on request."""

from __future__ import annotations

import asyncio

import pytest

from meantime import Call, Context, HttpDoor, Meantime, Thread, current
from meantime.testing import FakeClock
from runtimes import runtime_of

from .conftest import OpenDoor
from .listening import Listener

pytestmark = pytest.mark.anyio


async def forever() -> None:
    await asyncio.Event().wait()


@pytest.mark.behaviour("H12")
async def test_a_bounded_snapshot_has_the_active_and_the_newest(door: HttpDoor, thread: Thread):
    await thread.start(Call(forever), id="busy")
    for number in range(230):
        await (await thread.start(Call(int, "1"), id=f"n{number}")).wait()
    async with Listener(door, "/v1/events?snapshot=bounded") as stream:
        said = await stream.hear()
    ids = [task["id"] for task in said.data["tasks"]]
    assert (len(ids), ids[0], ids[-1], said.data["bounded"]) == (201, "n229", "busy", True)
    assert said.data["stats"]["totalTasks"] == 231
    async with Listener(door) as stream:
        assert len((await stream.hear()).data["tasks"]) == 231


@pytest.mark.behaviour("H12")
async def test_replay_tells_what_was_missed(door: HttpDoor, thread: Thread):
    async with Listener(door, "/v1/events?replay=1") as stream:
        await stream.hear()
        await thread.start(Call(forever), id="one")
        last = await stream.hear()
        assert last.id is not None
    await (await thread.start(Call(int, "1"), id="two")).wait()
    async with Listener(door, "/v1/events?replay=1", Last_Event_ID=last.id) as stream:
        said = [await stream.hear(), await stream.hear()]
        assert [(one.event, one.data["id"]) for one in said] == [
            ("task.created", "two"),
            ("task.completed", "two"),
        ]
        assert int(said[1].id or 0) > int(said[0].id or 0) > int(last.id)
        await thread.start(Call(forever), id="three")
        assert (await stream.hear()).data["id"] == "three"


@pytest.mark.behaviour("H12")
@pytest.mark.parametrize("seen", ["1", "999999"])
async def test_replay_of_what_is_gone_is_a_resync(door: HttpDoor, thread: Thread, mt: Meantime, seen: str):
    """Older than the journal, or from another ledger: told so, and given the whole state."""
    for _ in range(5):
        await (await thread.start(Call(int, "1"))).wait()
    runtime_of(mt).store._journal.trim(3)  # pyright: ignore[reportAttributeAccessIssue]
    async with Listener(door, "/v1/events?replay=1", Last_Event_ID=seen) as stream:
        said, whole = await stream.hear(), await stream.hear()
    assert (said.event, said.data["reason"]) == ("resync", "too_old")
    assert (whole.event, len(whole.data["tasks"])) == ("snapshot", 5)
    assert whole.id is not None


@pytest.mark.behaviour("H12")
@pytest.mark.parametrize("wanted", ["thread=conv-1", "batch=b-1", "task=mine"])
async def test_a_stream_can_be_filtered_by_thread_and_batch(
    door: HttpDoor, thread: Thread, mt: Meantime, wanted: str
):
    await thread.start(Call(forever), id="mine", batch="b-1")
    await mt.thread("other").start(Call(forever), id="theirs")
    async with Listener(door, f"/v1/events?{wanted}") as stream:
        assert [task["id"] for task in (await stream.hear()).data["tasks"]] == ["mine"]
        await mt.thread("other").cancel("theirs", wait=True)
        await thread.cancel("mine", wait=True)
        said = await stream.hear()
        assert said.data["id"] == "mine"


@pytest.mark.behaviour("H12")
async def test_updates_that_come_together_are_one(open_door: OpenDoor, thread: Thread, clock: FakeClock):
    door = await open_door(batch=1.0)
    contexts: list[Context] = []

    async def work() -> None:
        contexts.append(current())
        await forever()

    async with Listener(door) as stream:
        await stream.hear()
        await thread.start(Call(work), id="busy")
        assert (await stream.hear()).event == "task.created"
        for percent in (10, 20, 30):
            contexts[0].progress(percent)
            await clock.advance(0.25)  # each is written to the journal
        await thread.start(Call(forever), id="next")
        await clock.advance(0.25)
        said = await stream.hear()
        assert (said.event, said.data["progress"]["percent"]) == ("task.updated", 30.0)
        assert (await stream.hear()).data["id"] == "next"
