"""GET /v1/events: the scenarios of seed 001's stream."""

from __future__ import annotations

import asyncio

import pytest

from meantime import Agent, Call, HttpDoor, Thread, current
from meantime.testing import FakeClock, FakeSessionRunner

from .conftest import OpenDoor
from .listening import Listener

pytestmark = pytest.mark.anyio


async def forever() -> None:
    await asyncio.Event().wait()


async def broken() -> None:
    raise ValueError("no such file")


@pytest.mark.behaviour("H12")
@pytest.mark.scenario("001", "Sends snapshot on initial connection")
async def test_a_snapshot_is_sent_on_connection(door: HttpDoor, thread: Thread):
    await thread.start(Call(forever), id="busy")
    await (await thread.start(Call(int, "1"), id="done")).wait()
    await (await thread.start(Call(int, "1"), id="old")).wait()
    await thread.clear("old")
    async with Listener(door) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert stream.headers["access-control-allow-origin"] == "*"
        said = await stream.hear()
    assert (said.event, said.id) == ("snapshot", None)
    assert [task["id"] for task in said.data["tasks"]] == ["done", "busy"]
    assert said.data["stats"]["byStatus"]["running"] == 1
    assert said.data["stats"]["totalTasks"] == 2


@pytest.mark.behaviour("H12")
@pytest.mark.scenario(
    "001",
    "Sends task.created when new task launches",
    "Sends task.updated when task progress changes",
    "Sends task.completed when task finishes successfully",
    "Sends task.error when task fails",
    "Sends task.cancelled when task is cancelled",
)
async def test_the_five_deltas_follow_what_happens(door: HttpDoor, thread: Thread, clock: FakeClock):
    go = asyncio.Event()

    async def work() -> str:
        current().progress(50, tool="read")
        await go.wait()
        return "done"

    async with Listener(door) as stream:
        assert (await stream.hear()).data["tasks"] == []
        await thread.start(Call(work), id="good", description="the work")
        said = await stream.hear()
        assert (said.event, said.data["id"], said.data["status"]) == ("task.created", "good", "running")
        assert said.data["description"] == "the work"
        await clock.advance(1)
        said = await stream.hear()
        assert (said.event, said.data["progress"]["toolCalls"]) == ("task.updated", 1)
        go.set()
        said = await stream.hear()
        assert (said.event, said.data["status"], said.data["result"]) == (
            "task.completed",
            "completed",
            "done",
        )

        await (await thread.start(Call(broken), id="bad")).wait()
        created, said = await stream.hear(), await stream.hear()
        assert (created.event, created.data["status"], created.data["error"]) == (
            "task.created",
            "running",
            None,
        )
        assert (said.event, said.data["status"]) == ("task.error", "error")
        assert "no such file" in said.data["error"]

        await (await thread.start(Call(forever), id="gone")).cancel(wait=True)
        heard = [await stream.hear()]
        while heard[-1].event != "task.cancelled":
            heard.append(await stream.hear())
        assert heard[0].event == "task.created"
        assert (heard[-1].data["id"], heard[-1].data["status"]) == ("gone", "cancelled")


@pytest.mark.behaviour("H12")
async def test_a_resume_is_an_update(
    door: HttpDoor, thread: Thread, agents: FakeSessionRunner, clock: FakeClock
):
    await (await thread.start(Agent("explore", "look"), id="again")).wait()
    async with Listener(door) as stream:
        await stream.hear()
        agents.hold()
        await thread.resume("again", "and now?")
        said = await stream.hear()
        while said.data["status"] != "resumed":
            said = await stream.hear()
        assert (said.event, said.data["resumeCount"], said.data["prompt"]) == ("task.updated", 1, "and now?")
        agents.release()
        while said.event == "task.updated":
            said = await stream.hear()
        assert (said.event, said.data["resumeCount"]) == ("task.completed", 1)


@pytest.mark.behaviour("H12")
@pytest.mark.scenario("001", "Sends heartbeat every 30 seconds")
async def test_a_heartbeat_is_sent_after_30_seconds_of_silence(
    door: HttpDoor, thread: Thread, clock: FakeClock
):
    async with Listener(door) as stream:
        await stream.hear()
        await clock.advance_to_alarm(30)
        said = await stream.hear()
        assert said.event == "heartbeat"
        assert said.data == {"ts": "2023-11-14T22:13:50.000Z"}
        await clock.until(lambda: 30 in clock.due_in)
        await clock.advance(20)
        await thread.start(Call(forever))  # the silence is broken, and counts from here again
        assert (await stream.hear()).event == "task.created"
        await clock.until(lambda: door._serving._app.feed.ring._waiting)
        await clock.advance(29)
        await clock.advance(1)
        assert (await stream.hear()).event == "heartbeat"


@pytest.mark.behaviour("H12")
@pytest.mark.scenario("001", "Sends fresh snapshot on reconnection")
async def test_a_fresh_snapshot_is_sent_on_reconnection(door: HttpDoor, thread: Thread):
    async with Listener(door) as stream:
        await stream.hear()
    await thread.start(Call(forever), id="meanwhile")
    async with Listener(door, Last_Event_ID="1") as stream:  # not asked to replay: a snapshot all the same
        said = await stream.hear()
        assert (said.event, [task["id"] for task in said.data["tasks"]]) == ("snapshot", ["meanwhile"])
        await thread.start(Call(forever), id="next")
        said = await stream.hear()
        assert (said.event, said.data["id"]) == ("task.created", "next")


@pytest.mark.behaviour("H12")
async def test_a_wrong_option_is_an_answer_not_a_stream(door: HttpDoor):
    for path, status in (("snapshot=some", 400), ("task=nobody", 404)):
        async with Listener(door, f"/v1/events?{path}") as stream:
            assert (stream.status, stream.headers["content-type"]) == (status, "application/json")


@pytest.mark.behaviour("H12")
async def test_streams_end_when_the_door_closes(open_door: OpenDoor):
    door = await open_door()
    async with Listener(door) as stream:
        await stream.hear()
        await door.close()
        with pytest.raises(EOFError):
            await stream.hear()


@pytest.mark.behaviour("H12")
async def test_the_journal_is_not_read_while_nobody_watches(door: HttpDoor, clock: FakeClock):
    def pumps() -> list[asyncio.Task[object]]:
        return [task for task in asyncio.all_tasks() if task.get_name() == "meantime-http-feed"]

    async with Listener(door) as stream:
        await stream.hear()
        async with Listener(door) as second:
            await second.hear()
            assert len(pumps()) == 1
    await clock.until(lambda: not pumps())
