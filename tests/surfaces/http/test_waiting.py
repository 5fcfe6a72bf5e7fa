"""Long polls end with what they wait for, with their time, with their client, and with the door."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest
from tests.waiting import LIMIT

from jobs import Job
from meantime import Call, HttpDoor, Meantime, Thread
from meantime.testing import FakeClock
from runtimes import runtime_of

from .conftest import OpenDoor, over_tcp

pytestmark = pytest.mark.anyio


def is_waiting(mt: Meantime, id: str) -> bool:
    return bool(runtime_of(mt).looking._waiting.get(id))


async def begun(clock: FakeClock, mt: Meantime, id: str) -> None:
    await clock.until(lambda: is_waiting(mt, id))


async def test_one_task_until_it_has_ended(
    http: httpx.AsyncClient, thread: Thread, mt: Meantime, clock: FakeClock
):
    job = Job()
    await thread.start(job.call, id="slow")
    asked = asyncio.create_task(http.get("/v1/tasks/slow/wait"))
    await begun(clock, mt, "slow")
    job.finish("done")
    assert (await asked).json()["result"] == "done"
    assert (await http.get("/v1/tasks/slow/wait")).json()["result"] == "done"


async def test_one_task_until_the_time_is_over(
    http: httpx.AsyncClient, thread: Thread, mt: Meantime, clock: FakeClock
):
    job = Job()
    await thread.start(job.call, id="slow")
    asked = asyncio.create_task(http.get("/v1/tasks/slow/wait?timeout=7.5"))
    await clock.advance_to_alarm(7.5)
    assert (await asked).json()["status"] == "running"
    assert (await http.get("/v1/tasks/slow/wait?timeout=0")).json()["status"] == "running"
    job.finish()


@pytest.mark.parametrize("timeout", ["601", "-1", "x", "1e3", "nan", "inf", "٣"])
async def test_an_impossible_wait_is_refused(http: httpx.AsyncClient, tasks: None, timeout: str):
    answer = await http.get("/v1/tasks/mine/wait", params={"timeout": timeout})
    assert (answer.status_code, "timeout" in answer.json()["error"]) == (400, True)


async def test_several_until_any_or_all(
    write: httpx.AsyncClient, thread: Thread, mt: Meantime, clock: FakeClock
):
    first, second = Job(), Job()
    await thread.start(first.call, id="first", batch="b-1")
    await thread.start(second.call, id="second", batch="b-1")
    all_of = asyncio.create_task(write.post("/v1/wait", json={"batch": "b-1"}))
    any_of = asyncio.create_task(write.post("/v1/wait", json={"ids": ["second", "first"], "until": "any"}))
    of_thread = asyncio.create_task(write.post("/v1/wait", json={"thread": "conv-1", "timeout": 9}))
    await clock.until(lambda: len(runtime_of(mt).looking._waiting.get("first", ())) == 3)
    first.finish()
    found = (await any_of).json()
    assert ([task["id"] for task in found["tasks"]], found["done"]) == (["second", "first"], True)
    assert [task["status"] for task in found["tasks"]] == ["running", "completed"]
    await clock.advance(9)
    assert (await of_thread).json()["done"] is False
    second.finish()
    found = (await all_of).json()
    assert ([task["id"] for task in found["tasks"]], found["done"]) == (["first", "second"], True)
    nothing = await write.post("/v1/wait", json={"thread": "conv-1"})
    assert nothing.json() == {"tasks": [], "done": True}


@pytest.mark.parametrize(
    "body", [{}, {"ids": ["a"] * 1_001}, {"ids": [], "batch": "b"}, {"thread": "a", "until": "some"},
             {"thread": "a", "timeout": 601}, {"thread": "a", "timeout": -1}]
)  # fmt: skip
async def test_nothing_to_wait_for_is_refused(write: httpx.AsyncClient, body: dict[str, object]):
    assert (await write.post("/v1/wait", json=body)).status_code == 400


@pytest.mark.behaviour("P7")
async def test_a_thread_is_woken_when_something_is_unread(
    http: httpx.AsyncClient, thread: Thread, clock: FakeClock, mt: Meantime
):
    waiting = runtime_of(mt).waking._sleepers
    asked = asyncio.create_task(http.get("/v1/threads/conv-1/wake"))
    await clock.until(lambda: waiting.get("conv-1"))
    await (await thread.start(Call(int, "1"))).wait()
    found = (await asked).json()
    assert found["idle"] is True
    assert (await http.get("/v1/threads/conv-1/wake")).json() == found  # -1: at once, as it is unread
    again = asyncio.create_task(http.get(f"/v1/threads/conv-1/wake?seen={found['seen']}&timeout=3"))
    await clock.advance_to_alarm(3)
    assert (await again).status_code == 204
    assert not waiting.get("conv-1")


async def test_a_client_that_goes_away_leaves_nothing_behind(
    door: HttpDoor, thread: Thread, mt: Meantime, clock: FakeClock
):
    job = Job()
    await thread.start(job.call, id="slow")
    for path in ("/v1/tasks/slow/wait", "/v1/threads/conv-1/wake"):
        _, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n\r\n".encode())
        polls = door._serving._app.polls  # type: ignore[union-attr]
        await clock.until(lambda polls=polls: len(polls) == 1)
        await clock.until(lambda: is_waiting(mt, "slow") or runtime_of(mt).waking._sleepers.get("conv-1"))
        writer.transport.abort()
        await clock.until(lambda polls=polls: len(polls) == 0)
        assert not is_waiting(mt, "slow")
        assert not runtime_of(mt).waking._sleepers.get("conv-1")
    job.finish()


@pytest.mark.behaviour("H6")
async def test_a_door_that_closes_answers_those_who_wait(
    open_door: OpenDoor, thread: Thread, mt: Meantime, clock: FakeClock
):
    door = await open_door(stop_seconds=10 * LIMIT)  # those who wait need none of them
    job = Job()
    await thread.start(job.call, id="slow")
    async with over_tcp(door.url) as http:
        one = asyncio.create_task(http.get("/v1/tasks/slow/wait"))
        wake = asyncio.create_task(http.get("/v1/threads/conv-1/wake"))
        await begun(clock, mt, "slow")
        await clock.until(lambda: runtime_of(mt).waking._sleepers.get("conv-1"))
        await asyncio.wait_for(door.close(), LIMIT)
        assert (await one).json()["status"] == "running"
        assert (await wake).status_code == 204
    job.finish()


@pytest.mark.behaviour("P10")
async def test_the_number_of_waiting_clients_has_a_cap(
    open_door: OpenDoor, thread: Thread, mt: Meantime, clock: FakeClock
):
    door = await open_door(waiting=2)
    job = Job()
    await thread.start(job.call, id="slow")
    async with over_tcp(door.url) as http:
        two = [asyncio.create_task(http.get("/v1/tasks/slow/wait")) for _ in range(2)]
        await clock.until(lambda: len(runtime_of(mt).looking._waiting.get("slow", ())) == 2)
        third = await http.get("/v1/tasks/slow/wait")
        assert (third.status_code, third.json()["code"]) == (503, "too_many_waiting")
        assert third.headers["retry-after"] == "5"
        headers = {"Authorization": f"Bearer {door.token}"}
        cancelled = await http.post("/v1/tasks/slow/cancel", json={"wait": True}, headers=headers)
        assert cancelled.json()["disposition"] == "applied"  # it was done, so it is no error
        assert [(await one).status_code for one in two] == [200, 200]
        assert (await http.get("/v1/tasks/slow/wait")).status_code == 200


async def test_a_wait_costs_nothing_while_nothing_happens(
    http: httpx.AsyncClient, thread: Thread, mt: Meantime, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
):
    """No look at the ledger, and no alarm but that of its end."""
    job = Job()
    await thread.start(job.call, id="slow")
    asked = asyncio.create_task(http.get("/v1/tasks/slow/wait?timeout=599"))
    await begun(clock, mt, "slow")
    looks = 0
    load = runtime_of(mt).store.load

    async def counted(id: str) -> object:
        nonlocal looks
        looks += 1
        return await load(id)

    monkeypatch.setattr(runtime_of(mt).store, "load", counted)
    await clock.advance(500)
    assert looks == 0
    job.finish("late")
    assert json.loads((await asked).content)["result"] == "late"
