"""M6 and P10: clients are capped, slow ones start again, and nobody holds a descriptor for ever."""

from __future__ import annotations

import asyncio
import os
import socket

import httpx
import pytest
from tests.waiting import LIMIT

from meantime import Call, HttpDoor, Thread
from meantime.testing import FakeClock

from .conftest import OpenDoor, over_tcp
from .listening import Listener

pytestmark = pytest.mark.anyio


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def dial(door: HttpDoor, said: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(said)
    await writer.drain()
    return reader, writer


async def cut_off(reader: asyncio.StreamReader) -> bytes:
    """What came before the connection was closed on us."""
    try:
        return await asyncio.wait_for(reader.read(), LIMIT)
    except ConnectionResetError:
        return b""


@pytest.mark.behaviour("M6")
async def test_no_more_streams_are_open_than_the_cap(open_door: OpenDoor):
    door = await open_door(clients=3)
    async with Listener(door) as one, Listener(door), Listener(door):
        await one.hear()
        async with Listener(door) as refused:
            assert (refused.status, refused.headers["retry-after"]) == (503, "5")
    async with over_tcp(door.url) as http:
        assert (await http.get("/v1/health")).status_code == 200


@pytest.mark.behaviour("M6")
async def test_a_place_is_free_again_when_its_client_left(open_door: OpenDoor, clock: FakeClock):
    door = await open_door(clients=1)
    feed = door._serving._app.feed
    for _ in range(5):
        async with Listener(door) as stream:
            assert stream.status == 200
            await stream.hear()
        await clock.until(lambda: feed.clients == 0)


@pytest.mark.breadth
@pytest.mark.behaviour("M6")
async def test_a_client_that_does_not_read_is_resynced(open_door: OpenDoor, thread: Thread, clock: FakeClock):
    """It falls out of the ring, costs nobody anything, and starts again when it reads."""
    door = await open_door(backlog=8)
    ring = door._serving._app.feed.ring
    async with Listener(door) as slow, Listener(door) as quick:
        await slow.hear()
        await quick.hear()
        slow.reader._transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        heard = 0
        long = "𝕏" * 2_000
        for _ in range(500):  # 12 MB: more than the buffers of a connection hold
            await (await thread.start(Call(lambda: long), description=long)).wait()
            while heard < ring.end:
                assert (await quick.hear()).event != "resync"
                heard += 1
        slow.reader._transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue]
        events: list[str] = []
        while "resync" not in events:
            events.append((await slow.hear()).event)
        whole = await slow.hear()
        assert (whole.event, len(whole.data["tasks"])) == ("snapshot", 500)


@pytest.mark.behaviour("M6")
async def test_a_burst_does_not_throw_out_a_client_that_keeps_up(open_door: OpenDoor, thread: Thread):
    door = await open_door(batch=0.0)
    async with Listener(door) as stream:
        await stream.hear()
        await asyncio.gather(*(thread.start(Call(int, "1"), id=f"n{number}") for number in range(1_000)))
        heard: dict[str, set[str]] = {"task.created": set(), "task.completed": set(), "task.updated": set()}
        while len(heard["task.completed"]) < 1_000:
            said = await stream.hear()
            heard[said.event].add(said.data["id"])
    assert len(heard["task.created"]) == 1_000


@pytest.mark.behaviour("P10")
@pytest.mark.parametrize("said", [b"", b"GET /v1/health HT", b"GET /v1/health HTTP/1.1\r\nHost: 127"])
async def test_a_head_that_never_comes_is_not_waited_for(door: HttpDoor, clock: FakeClock, said: bytes):
    before = descriptors()
    reader, writer = await dial(door, said)
    await clock.until(lambda: any(abs(left - 10) < 0.01 for left in clock.due_in))
    await clock.advance(10)
    assert await cut_off(reader) == b""
    writer.close()
    await clock.until(lambda: descriptors() <= before)


@pytest.mark.behaviour("P10")
async def test_a_second_head_has_its_time_too(door: HttpDoor, clock: FakeClock):
    whole = f"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n\r\n".encode()
    reader, writer = await dial(door, whole)
    await reader.readuntil(b"}")
    writer.write(b"GET /v1/hea")
    await clock.until(lambda: any(abs(left - 10) < 0.01 for left in clock.due_in))
    await clock.advance(10)
    assert await cut_off(reader) == b""
    writer.close()


@pytest.mark.behaviour("P10")
async def test_a_head_that_never_ends_is_cut(door: HttpDoor):
    reader, writer = await dial(door, b"GET / HTTP/1.1\r\n")
    try:
        for _ in range(100):
            writer.write(b"X-More: " + b"x" * 4_000 + b"\r\n")
            await writer.drain()
    except ConnectionError:
        pass
    assert b"200" not in await cut_off(reader)
    writer.close()


@pytest.mark.behaviour("P10")
async def test_a_url_or_body_that_is_too_big_is_refused(http: httpx.AsyncClient):
    assert (await http.get("/v1/tasks", params={"search": "x" * 9_000})).status_code == 414
    big = await http.request("GET", "/v1/tasks", content=b"x" * 1_000_001)
    assert (big.status_code, big.json()["code"]) == (413, "body_too_big")


@pytest.mark.breadth
@pytest.mark.behaviour("P10")
async def test_a_client_that_does_not_read_its_response_is_disconnected(
    open_door: OpenDoor, thread: Thread, clock: FakeClock
):
    """Closing would wait until the client has read: its descriptor would be ours to keep."""
    door = await open_door(stall_seconds=30.0)
    text = "x" * 1_900
    handles = [await thread.start(Call(lambda: text)) for _ in range(3_000)]
    await thread.wait(*handles)
    before = descriptors()
    sockets: list[socket.socket] = []
    for _ in range(5):
        made = socket.create_connection(("127.0.0.1", door.port))
        made.sendall(f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n\r\n".encode())
        sockets.append(made)
    feed = door._serving._app.feed
    await clock.until(lambda: feed.clients == 5)
    await clock.until(lambda: sum(abs(left - 30) < 0.01 for left in clock.due_in) == 5)
    await clock.settle()
    await clock.advance(31)
    await clock.until(lambda: feed.clients == 0)
    await clock.until(lambda: descriptors() <= before + len(sockets))
    for made in sockets:
        made.close()


@pytest.mark.behaviour("P10")
async def test_connections_have_a_cap(open_door: OpenDoor):
    door = await open_door(connections=4)
    held = [await dial(door, b"") for _ in range(4)]
    reader, writer = await dial(door, b"")
    refused = await cut_off(reader)
    assert refused.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b'"error":"4 connections are open already."' in refused
    for _, one in [*held, (reader, writer)]:
        one.transport.abort()
