"""Turns over HTTP: leased, acknowledged, given back; in order; each thread its own."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.waiting import until_async

from jobs import Job
from meantime import Call, HttpDoor, Meantime, Thread
from meantime.testing import FakeClock
from runtimes import runtime_of

from .conftest import over_tcp

pytestmark = pytest.mark.anyio


async def ended(thread: Thread, *ids: str) -> None:
    for id in ids:
        await (await thread.start(Call(int, "1"), id=id)).wait()


async def opened(write: httpx.AsyncClient, thread: str = "conv-1", **body: Any) -> dict[str, Any]:
    answer = await write.post(f"/v1/threads/{thread}/turns", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def ids(found: dict[str, Any]) -> list[str]:
    return [notice["id"] for notice in found["notices"]]


@pytest.mark.behaviour("N2")
async def test_a_turn_leases_tells_and_is_done(write: httpx.AsyncClient, thread: Thread):
    await ended(thread, "one", "two")
    turn = await opened(write)
    (first, second) = turn["notices"]
    assert (turn["thread"], first["id"], second["id"]) == ("conv-1", "one.1", "two.1")
    assert first == {
        **first, "number": 1, "taskId": "one", "run": 1, "status": "completed", "state": "leased",
        "text": "1", "deliveries": 1,
    }  # fmt: skip
    assert (first["message"]["role"], first["task"]["id"]) == ("user", "one")
    (part,) = first["message"]["parts"]
    assert part["text"].startswith('<task-notification id="one.1"')
    assert part["hidden"] is False
    path = f"/v1/turns/{turn['turn']}"
    assert (await write.post(f"{path}/ack", json={"notices": ["one.1"]})).json() == {"told": ["one.1"]}
    assert (await write.post(f"{path}/release", json={})).status_code == 204
    assert ids(await opened(write)) == ["two.1"]


@pytest.mark.behaviour("N5")
async def test_what_comes_in_is_leased_at_a_boundary(write: httpx.AsyncClient, thread: Thread):
    turn = await opened(write)
    assert turn["notices"] == []
    await ended(thread, "one", "two")
    boundary = f"/v1/turns/{turn['turn']}/boundary"
    assert ids((await write.post(boundary, json={"limit": 1})).json()) == ["one.1"]
    assert ids((await write.post(boundary, json={})).json()) == ["two.1"]
    assert ids((await write.post(boundary, json={})).json()) == []


@pytest.mark.behaviour("N2")
async def test_the_notices_of_a_client_that_vanished_come_back(
    write: httpx.AsyncClient, thread: Thread, clock: FakeClock
):
    await ended(thread, "one")
    gone = await opened(write, lease=30)
    assert ids(await opened(write)) == []  # another turn holds it
    await clock.advance(20)
    assert (await write.post(f"/v1/turns/{gone['turn']}/renew", json={})).status_code == 204
    await clock.advance(20)
    assert ids(await opened(write)) == []
    await clock.advance(11)
    later = await opened(write)
    assert [(notice["id"], notice["deliveries"]) for notice in later["notices"]] == [("one.1", 2)]
    late = await write.post(f"/v1/turns/{gone['turn']}/ack", json={"notices": ["one.1"]})
    assert (late.status_code, late.json()["code"], late.json()["notices"]) == (409, "lease_lost", ["one.1"])
    assert (await write.post(f"/v1/turns/{gone['turn']}/renew", json={})).status_code == 404
    assert (await write.post(f"/v1/turns/{gone['turn']}/release", json={})).status_code == 204


@pytest.mark.behaviour("N2")
async def test_an_ack_is_answered_the_same_however_often_it_is_sent(
    write: httpx.AsyncClient, thread: Thread, clock: FakeClock
):
    await ended(thread, "one", "two")
    turn = await opened(write)
    ack, body = f"/v1/turns/{turn['turn']}/ack", {"notices": ["one.1", "two.1"]}
    first = (await write.post(ack, json=body)).json()
    assert first == {"told": ["one.1", "two.1"]}
    assert (await write.post(ack, json=body)).json() == first
    await write.post(f"/v1/turns/{turn['turn']}/release", json={})
    assert (await write.post(ack, json=body)).json() == first
    assert (await write.post("/v1/turns/turn_other/ack", json=body)).status_code == 409


@pytest.mark.behaviour("N19")
async def test_what_the_agent_read_by_itself_counts_as_told_with_the_ack(
    write: httpx.AsyncClient, thread: Thread
):
    turn = await opened(write)
    await ended(thread, "one", "two")
    ack = f"/v1/turns/{turn['turn']}/ack"
    for _ in range(2):
        reads = ["one.1", "tw.1", "two.2", "nobody.1", "nonsense"]
        told = (await write.post(ack, json={"reads": reads})).json()
        assert told == {"told": ["one.1"]}
    await write.post(f"/v1/turns/{turn['turn']}/release", json={})
    assert ids(await opened(write)) == ["two.1"]


@pytest.mark.behaviour("P6")
async def test_what_fails_too_often_is_parked_and_can_be_had_again(write: httpx.AsyncClient, thread: Thread):
    await ended(thread, "one")
    for _ in range(5):
        turn = await opened(write)
        await write.post(f"/v1/turns/{turn['turn']}/release", json={"failed": True})
    assert ids(await opened(write)) == []
    parked = (await write.get("/v1/notices?state=parked")).json()
    assert ids(parked) == ["one.1"]
    assert (await write.post("/v1/threads/conv-1/unpark", json={})).json() == {"unparked": 1}


@pytest.mark.parametrize(
    "body", [{"lease": 0}, {"lease": 3601}, {"lease": None}, {"lease": -1}, {"limit": 0}, {"limit": 101}]
)
async def test_a_turn_has_a_lease_and_a_limit(write: httpx.AsyncClient, thread: Thread, body: dict[str, Any]):
    """Without an end, the notices of a client that vanished would never come back."""
    await ended(thread, "one")
    assert (await write.post("/v1/threads/conv-1/turns", json=body)).status_code == 400
    assert ids(await opened(write)) == ["one.1"]


@pytest.mark.behaviour("N2")
async def test_a_turn_that_nobody_heard_of_is_given_back_at_once(
    door: HttpDoor, write: httpx.AsyncClient, thread: Thread, mt: Meantime, monkeypatch: pytest.MonkeyPatch
):
    """The client left before the answer was written: nobody knows the id of this turn."""
    await ended(thread, "one")
    opening, go = asyncio.Event(), asyncio.Event()
    real = mt._runtime.open_turn

    async def slow(thread: str, **more: Any) -> Any:
        opening.set()
        await go.wait()
        return await real(thread, **more)

    monkeypatch.setattr(mt._runtime, "open_turn", slow)
    _, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(
        f"POST /v1/threads/conv-1/turns HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n"
        f"Authorization: Bearer {door.token}\r\nContent-Type: application/json\r\n"
        "Content-Length: 2\r\n\r\n{}".encode()
    )
    await opening.wait()
    connections = door._serving._server.server_state.connections  # type: ignore[union-attr]
    writer.transport.abort()
    await until_async(lambda: not connections, "the connection is gone")
    go.set()
    monkeypatch.undo()

    async def told() -> list[str]:
        return ids(await opened(write))

    assert await until_async(told, "the other turn is closed") == ["one.1"]


@pytest.mark.behaviour("P12")
async def test_a_threads_token_has_its_own_turns(
    door: HttpDoor, write: httpx.AsyncClient, thread: Thread, mt: Meantime
):
    await ended(thread, "one")
    await ended(mt.thread("other"), "theirs")
    theirs = await opened(write, "other")
    headers = {"Authorization": f"Bearer {door.thread_token('conv-1')}"}
    async with over_tcp(door.url, headers=headers) as agent:
        assert (await agent.post("/v1/threads/other/turns", json={})).status_code == 404
        for verb, body in (
            ("boundary", {}),
            ("renew", {}),
            ("ack", {"notices": ["theirs.1"]}),
            ("release", {}),
        ):
            answer = await agent.post(f"/v1/turns/{theirs['turn']}/{verb}", json=body)
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), verb
        mine = await opened(agent)
        told = await agent.post(f"/v1/turns/{mine['turn']}/ack", json={"notices": ["one.1"]})
        assert told.json() == {"told": ["one.1"]}
        read = await agent.post(f"/v1/turns/{mine['turn']}/ack", json={"reads": ["theirs.1"]})
        assert read.json() == {"told": []}
        task = (await agent.post("/v1/tasks", json={"command": ["true"]})).json()
        assert task["parentSessionID"] == "conv-1"
        assert (
            await agent.post("/v1/tasks", json={"command": ["true"], "thread": "other"})
        ).status_code == 404
        assert (await agent.post("/v1/tasks/theirs/cancel", json={})).status_code == 404
        assert (await agent.post("/v1/cancel", json={"thread": "other"})).status_code == 404
        assert (await agent.post("/v1/cancel", json={})).status_code == 200
        for path in ("/v1/purge", "/v1/limits"):
            assert (await agent.post(path, json={})).json()["code"] == "person_only"
        assert (await agent.get("/v1/threads")).status_code == 403
        assert (await agent.get("/v1/info")).json()["executors"] == []
    held = await write.post(f"/v1/turns/{theirs['turn']}/ack", json={"notices": ["theirs.1"]})
    assert held.json() == {"told": ["theirs.1"]}


@pytest.mark.behaviour("N6")
async def test_a_busy_thread_is_not_woken(
    write: httpx.AsyncClient, thread: Thread, clock: FakeClock, mt: Meantime
):
    job = Job()
    await thread.start(job.call)
    turn = await opened(write)
    woken = asyncio.create_task(write.get("/v1/threads/conv-1/wake?timeout=600"))
    await clock.until(lambda: runtime_of(mt).waking._sleepers.get("conv-1"))
    job.finish()
    await clock.until(lambda: runtime_of(mt).waking.unread("conv-1"))
    assert not woken.done()
    await write.post(f"/v1/turns/{turn['turn']}/release", json={})
    assert (await woken).json()["idle"] is True
