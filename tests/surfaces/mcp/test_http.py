"""/mcp on the HTTP door: behind the same gate, a conversation for each client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from tests.waiting import LIMIT, until_async

from meantime import HttpDoor, Meantime, Shell, Tool
from meantime.dialects.meantime.meantime_arguments import LONGEST_WAIT
from meantime.integrations.mcp.servers import HttpServer
from meantime.surfaces.http import mcp_endpoint
from meantime.surfaces.mcp.notice_delivery import Ride
from meantime.surfaces.mcp.streamable_http import Riding
from outcomes import failed

from .conftest import QUICK, id_in, notices
from .tasking import EXTENSION, call_as_task, result

pytestmark = pytest.mark.anyio
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture
async def door(mt: Meantime) -> AsyncIterator[HttpDoor]:
    async with mt.serve(port=0) as door:
        yield door


@asynccontextmanager
async def connected(
    door: HttpDoor, era: str, token: str | None = None, path: str = "/mcp", **given: Any
) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token or door.token}"}
    http = create_mcp_http_client(headers, httpx2.Timeout(LIMIT))
    async with (
        http,
        Client(streamable_http_client(door.url + path, http_client=http), mode=era, **given) as one,
    ):
        yield one


@asynccontextmanager
async def plain(door: HttpDoor, **headers: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=door.url, trust_env=False, headers={**ACCEPT, **headers}, timeout=LIMIT
    ) as http:
        yield http


@pytest.mark.breadth
async def test_a_thread_that_is_named_in_the_address(door: HttpDoor, era: str, mt: Meantime):
    async with connected(door, era, path="/mcp?thread=conv-1") as client:
        id = id_in(await client.call_tool("start", {"command": "echo done"}))
        assert (await mt.get(id)).thread == "conv-1"
        await mt.thread("conv-1").wait(id)
        assert notices(await client.call_tool("list", {})) == [f"{id}.1"]
    async with connected(door, era, path="/mcp?thread=conv-1") as client:
        # By the older protocol it says when it leaves: whether it has read all that, nobody knows.
        again = [f"{id}.1"] if era == "legacy" else []
        assert notices(await client.call_tool("list", {})) == again
        await client.call_tool("list", {})
        await until_async(lambda: _told(mt, "conv-1"), "all are told")


async def _told(mt: Meantime, thread: str) -> bool:
    return not await mt.notices("unread", "leased", thread=thread)


async def test_a_thread_of_a_token(door: HttpDoor, era: str, mt: Meantime):
    """The address cannot lead it elsewhere."""
    await mt.thread("other").start(Shell("sleep 600"), id="theirs")
    token = door.thread_token("mine")
    async with connected(door, era, token, path="/mcp?thread=other") as client:
        id = id_in(await client.call_tool("start", {"command": "true"}))
        assert (await mt.get(id)).thread == "mine"
        assert (await client.call_tool("output", {"id": "theirs"})).is_error


async def test_a_thread_for_every_session(door: HttpDoor, mt: Meantime):
    async with connected(door, "legacy") as one, connected(door, "legacy") as two:
        first = id_in(await one.call_tool("start", {"command": "true"}))
        second = id_in(await two.call_tool("start", {"command": "true"}))
        threads = {(await mt.get(id)).thread for id in (first, second)}
        assert len(threads) == 2
        assert all(thread.startswith("mcp-") for thread in threads)
        assert (await two.call_tool("output", {"id": first})).is_error


async def test_a_session_belongs_to_its_token(door: HttpDoor):
    async with plain(door, Authorization=f"Bearer {door.thread_token('mine')}") as http:
        opened = await http.post("/mcp", json=INITIALIZE)
        session = opened.headers["mcp-session-id"]
        asked = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        headers = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        assert (await http.post("/mcp", json=asked, headers=headers)).status_code == 200
        for token in (door.token, door.thread_token("other")):
            others = {**headers, "Authorization": f"Bearer {token}"}
            assert (await http.post("/mcp", json=asked, headers=others)).status_code == 404
            assert (await http.delete("/mcp", headers=others)).status_code == 404
            assert (await http.get("/mcp", headers=others)).status_code == 404
        assert (await http.delete("/mcp", headers=headers)).status_code == 200


@pytest.mark.breadth
async def test_every_request_needs_the_token_and_a_known_host(door: HttpDoor):
    """Reading needs no token for programs of one's own; here everybody could start commands."""
    own = {"Authorization": f"Bearer {door.token}"}
    cases: list[tuple[dict[str, str], int]] = [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({**own, "Host": "evil.example"}, 421),
        ({**own, "Origin": "http://evil.example"}, 403),
        ({**own, "Origin": "null"}, 403),
        ({**own, "Content-Type": "text/plain"}, 415),
        ({**own, "Origin": door.url}, 200),
        (own, 200),
    ]
    for headers, status in cases:
        async with plain(door, **headers) as http:
            answer = await http.post("/mcp", json=INITIALIZE)
            assert answer.status_code == status, (headers, answer.text)
    async with plain(door) as http:
        assert (await http.get("/mcp")).status_code == 401
        assert (await http.delete("/mcp")).status_code == 401
        assert (await http.put("/mcp")).status_code == 405
        preflight = await http.options("/mcp")
        assert (preflight.status_code, "POST" in preflight.headers["access-control-allow-methods"]) == (
            204,
            False,
        )
        assert (await http.post(f"/~{door.token}/mcp", json=INITIALIZE)).status_code == 200


async def test_bodies_that_are_too_big_or_none(door: HttpDoor):
    async with plain(door, Authorization=f"Bearer {door.token}") as http:
        assert (await http.post("/mcp", content=b"x" * 1_000_001)).status_code == 413

        async def pieces() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b"x" * 100_000

        assert (await http.post("/mcp", content=pieces())).status_code == 413
        assert (await http.post("/mcp", content=b"{")).status_code == 400
        assert (await http.post("/mcp", content=b"[" * 100_000)).status_code == 400
        assert (await http.post("/mcp?thread=../x", json=INITIALIZE)).status_code == 400


@pytest.mark.breadth
async def test_a_client_that_goes_away_in_mid_call(door: HttpDoor, era: str, mt: Meantime):
    """What its answer would have told is told to the next call."""
    handle = await mt.thread("conv-1").start(Shell(["cat"], open_stdin=True), id="slow")

    async def wait() -> None:
        async with connected(door, era, path="/mcp?thread=conv-1") as client:
            await client.call_tool("wait", {"seconds": LONGEST_WAIT})

    calling = asyncio.create_task(wait())
    app: Any = door._serving._app  # type: ignore[union-attr]
    await until_async(lambda: app.mcp._served is not None, "the SDK is loading")
    held = (await app.mcp._served)._conversations
    await until_async(lambda: any(one.inbox._calls for one in held.values()), "the client waits")
    calling.cancel()
    await asyncio.wait([calling])
    await handle.send(eof=True)
    await handle.wait()
    async with connected(door, era, path="/mcp?thread=conv-1") as client:
        await until_async(lambda: _has(client, "slow.1"), "it is told again")


async def _has(client: Client, notice: str) -> bool:
    return notice in notices(await client.call_tool("list", {}))


@pytest.mark.breadth
async def test_closing_does_not_wait_for_those_who_wait(mt: Meantime, era: str):
    door = await mt.serve(port=0)
    await mt.thread("conv-1").start(Shell("sleep 600"))
    async with connected(door, era, path="/mcp?thread=conv-1") as client:
        await client.call_tool("list", {})
        calling = asyncio.create_task(client.call_tool("wait", {"seconds": LONGEST_WAIT}))
        served: Any = door._serving._app.mcp._served.result()  # type: ignore[union-attr]
        held = served._conversations
        await until_async(lambda: any(one.inbox._calls for one in held.values()), "the client waits")
        await asyncio.wait_for(door.close(), 0.9 * LONGEST_WAIT)  # it takes a moment, and the wait all of it
        calling.cancel()
        await asyncio.wait([calling])


@pytest.mark.breadth
async def test_tasks_over_http_and_over_our_restart(tmp_path: Any, era: str):
    declared: dict[str, Any] = {"extensions": [advertise(EXTENSION)]}
    async with (
        Meantime.open(tmp_path / "l.db", settings=QUICK) as mt,
        mt.serve(port=0) as door,
        connected(door, era, path="/mcp?thread=t", **declared) as client,
    ):
        id = (await call_as_task(client, era, "start", {"command": "sleep 0.2; echo late"}))["taskId"]
    async with Meantime.open(tmp_path / "l.db", settings=QUICK) as mt, mt.serve(port=0) as door:
        async with connected(door, era, path="/mcp?thread=t", **declared) as client:
            assert (await result(client, era, id))["content"][0]["text"] == "late\n"
        async with connected(door, era, path="/mcp?thread=u", **declared) as client:
            with pytest.raises(Exception, match="Task not found"):
                await result(client, era, id)


@pytest.mark.breadth
async def test_our_own_client_follows_our_own_server(door: HttpDoor, mt: Meantime):
    """Meantime in front of Meantime: the work of the one is a task of the other."""
    token = door.thread_token("remote")
    server = HttpServer(url=f"{door.url}/mcp", headers={"Authorization": f"Bearer {token}"})
    async with Meantime.open(":memory:", settings=QUICK, servers={"far": server}) as near:
        thread = near.thread("near")
        handle = await thread.start(Tool("far/start", {"command": "echo from afar"}))
        assert await asyncio.wait_for(handle.result(), LIMIT) == "from afar\n"
        failing = await thread.start(Tool("far/start", {"command": "exit 4"}))
        (task,) = await thread.wait(failing, timeout=LIMIT)
        assert task.status == "failed"
        assert "exit code 4" in failed(task).message
        unwanted = await thread.start(Tool("far/start", {"command": "sleep 600"}))
        await until_async(lambda: _session(near, unwanted.id), "it runs at the other one")
        await thread.cancel(unwanted, wait=True)
        await until_async(lambda: _all_ended(mt), "all have ended")


async def _session(near: Meantime, id: str) -> str | None:
    return (await near.get(id)).session


async def _all_ended(mt: Meantime) -> bool:
    return not await mt.list(["queued", "running", "cancelling"], thread="remote")


async def test_without_the_sdk_it_says_what_to_install(door: HttpDoor, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mcp_endpoint, "MODULE", "meantime_without_sdk")
    async with plain(door, Authorization=f"Bearer {door.token}") as http:
        answer = await http.post("/mcp", json=INITIALIZE)
        assert answer.status_code == 501
        assert json.loads(answer.text)["code"] == "extra_missing"
        monkeypatch.undo()
        assert (await http.post("/mcp", json=INITIALIZE)).status_code == 200


async def test_an_error_of_ours_on_the_way_in_is_plain_json(door: HttpDoor):
    async with plain(door, Authorization=f"Bearer {door.token}") as http:
        answer = await http.post("/mcp?thread=no%20spaces", json=INITIALIZE)
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_input")


async def test_an_answer_that_nobody_waited_for_did_not_get_out():
    start: dict[str, Any] = {"type": "http.response.start"}
    part: dict[str, Any] = {"type": "http.response.body", "more_body": True}
    last: dict[str, Any] = {"type": "http.response.body"}
    gone: dict[str, Any] = {"type": "http.disconnect"}
    assert await played(start, part, last) == "sent"
    assert await played(start, last, gone) == "sent"
    assert await played(start, part) == "back"
    assert await played(gone, start, last) == "back"
    assert await played() == "back"


async def played(*messages: dict[str, Any]) -> str:
    """What becomes of a ride when the server receives and sends this, in this order."""
    given: list[str] = []
    inbox: Any = SimpleNamespace(
        sent=lambda ride: given.append("sent"), give_back=lambda ride: given.append("back")
    )
    coming = iter([one for one in messages if one["type"] == "http.disconnect"])
    riding = Riding()

    async def receive() -> Any:
        return next(coming)

    async def send(message: Any) -> None: ...

    receiving, sending = riding.wrapped(receive, send)
    riding.add(inbox, cast("Ride", None))
    for message in messages:
        await (receiving() if message["type"] == "http.disconnect" else sending(message))
    riding.end()
    riding.add(inbox, cast("Ride", None))  # its call went on without it
    assert given.pop() == "back"
    return given.pop()
