"""What a command says, over the wire: by offset, by lines, and as it comes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.waiting import LIMIT

from meantime import Call, HttpDoor, Meantime, Settings, Shell, Thread
from meantime.testing import FakeClock

from .conftest import OpenDoor, over_tcp

pytestmark = pytest.mark.anyio
SAID = "one\nzwei: größe\n漢字\n"


@pytest.fixture
async def said(thread: Thread) -> str:
    handle = await thread.start(Shell(["printf", "%s", SAID]), id="cmd")
    await handle.wait()
    return SAID


@pytest.mark.behaviour("I4")
async def test_a_stretch_is_read_by_offset_and_says_where_to_read_on(http: httpx.AsyncClient, said: str):
    whole = said.encode()
    answer = (await http.get("/v1/tasks/cmd/output")).json()
    assert answer == {
        "data": said, "offset": 0, "next": len(whole), "total": len(whole), "lostBytes": 0, "ended": True,
    }  # fmt: skip
    offset, text = 0, ""
    for _ in range(len(whole)):  # in steps that cut every character
        piece = (await http.get(f"/v1/tasks/cmd/output?offset={offset}&limit=4")).json()
        text, offset = text + piece["data"], piece["next"]
        if piece["ended"]:
            break
    assert (text, offset) == (said, len(whole))
    raw = (await http.get("/v1/tasks/cmd/output?encoding=base64&offset=4&limit=5")).json()
    assert (base64.b64decode(raw["dataBase64"]), raw["next"], "data" in raw) == (whole[4:9], 9, False)


@pytest.mark.behaviour("I5")
async def test_the_last_lines_can_be_read(http: httpx.AsyncClient, said: str):
    answer = (await http.get("/v1/tasks/cmd/output?tail=1")).json()
    assert (answer["data"], answer["ended"]) == ("漢字\n", True)
    assert (await http.get("/v1/tasks/cmd/output?stream=stderr")).json()["total"] == 0


@pytest.mark.behaviour("F13")
@pytest.mark.parametrize(
    "query", ["stream=x", "encoding=x", "limit=0", "limit=1048577", "offset=-1", "tail=0", "tail=2&offset=1",
              "follow=perhaps", "format=chunks", "follow=1&format=x"]
)  # fmt: skip
async def test_what_cannot_be_asked_is_refused(http: httpx.AsyncClient, said: str, query: str):
    assert (await http.get(f"/v1/tasks/cmd/output?{query}")).status_code == 400


@pytest.mark.behaviour("I2")
@pytest.mark.parametrize("query", ["", "?follow=1"])
async def test_functions_have_no_log(http: httpx.AsyncClient, tasks: None, query: str):
    answer = await http.get(f"/v1/tasks/mine/output{query}")
    assert (answer.status_code, answer.json()["code"]) == (409, "no_log")
    assert (await http.get(f"/v1/tasks/nobody/output{query}")).status_code == 404


@pytest.mark.behaviour("H18")
async def test_follow_gives_the_bytes_as_they_come_and_ends_with_the_task(
    http: httpx.AsyncClient, thread: Thread, tmp_path: Path
):
    go = tmp_path / "go"
    script = f"printf 'first\\377'; until [ -e {go} ]; do sleep 0.02; done; printf second; exit 3"
    await thread.start(Shell(script), id="talks")
    heard = b""
    async with http.stream("GET", "/v1/tasks/talks/output?follow=1&encoding=base64") as answer:
        assert answer.headers["content-type"] == "application/octet-stream"
        async for piece in answer.aiter_bytes():
            heard += piece
            if heard == b"first\xff":
                go.touch()
    assert heard == b"first\xffsecond"
    again = await http.get("/v1/tasks/talks/output?follow=1&offset=6")
    assert (again.content, again.headers["content-type"]) == (b"second", "text/plain; charset=utf-8")


@pytest.fixture
async def lossy(tmp_path: Path) -> AsyncIterator[Meantime]:
    """Of each stream it keeps the first thousand bytes and the last."""
    settings = Settings(output_head=1000, output_ring=1000)
    async with Meantime.open(tmp_path / "lossy.db", settings=settings) as mt:
        yield mt


@pytest.mark.breadth
@pytest.mark.behaviour("I4")
async def test_chunks_say_where_bytes_were_lost(lossy: Meantime):
    handle = await lossy.thread("t").start(Shell("seq 1 2000"), id="fast")
    await handle.wait()
    whole = "".join(f"{number}\n" for number in range(1, 2001)).encode()
    door = await lossy.serve(port=0)
    async with over_tcp(door.url) as http:
        answer = await http.get("/v1/tasks/fast/output?follow=1&format=chunks&stream=stdout")
        assert answer.headers["content-type"] == "application/jsonl"
        lines = [json.loads(line) for line in answer.content.splitlines()]
        raw = (await http.get("/v1/tasks/fast/output?follow=1&stream=stdout")).content
        late = await http.get("/v1/tasks/fast/output?follow=1&format=chunks&stream=stdout&offset=1500")
    at = 0
    for line in lines:
        assert line["offset"] == at + line["lostBytes"]
        assert base64.b64decode(line["dataBase64"]) == whole[line["offset"] : line["next"]]
        at = line["next"]
    assert (at, lines[-1]["ended"]) == (len(whole), True)
    assert sum(line["lostBytes"] for line in lines) == len(whole) - len(raw) >= len(whole) - 2100
    first = json.loads(late.content.splitlines()[0])  # from the middle of the gap
    assert (first["offset"] - first["lostBytes"], first["lostBytes"] > 0) == (1500, True)


@pytest.mark.behaviour("H6")
async def test_a_door_that_closes_breaks_a_follower_off(open_door: OpenDoor, thread: Thread):
    """An end in good order would say that the task has said everything."""
    door = await open_door()
    handle = await thread.start(Shell("printf first; exec sleep 3600"), id="talks")
    async with (
        over_tcp(door.url) as http,
        http.stream("GET", "/v1/tasks/talks/output?follow=1") as answer,
    ):
        pieces = answer.aiter_bytes()
        assert await anext(pieces) == b"first"
        closing = asyncio.create_task(door.close())
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            await asyncio.wait_for(anext(pieces), LIMIT)
        await asyncio.wait_for(closing, LIMIT)
    await handle.cancel(wait=True)


async def test_a_follower_that_goes_away_leaves_nothing_behind(
    door: HttpDoor, thread: Thread, mt: Meantime, clock: FakeClock
):
    handle = await thread.start(Shell("printf first; exec sleep 3600"), id="talks")
    polls = door._serving._app.polls  # type: ignore[union-attr]
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    writer.write(
        f"GET /v1/tasks/talks/output?follow=1 HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n\r\n".encode()
    )
    await asyncio.wait_for(reader.readuntil(b"first"), LIMIT)
    assert len(polls) == 1
    writer.transport.abort()
    await clock.until(lambda: len(polls) == 0)
    await handle.cancel(wait=True)


@pytest.mark.behaviour("P12")
async def test_a_threads_token_follows_its_own(door: HttpDoor, said: str, mt: Meantime):
    headers = {"Authorization": f"Bearer {door.thread_token('other')}"}
    async with over_tcp(door.url, headers=headers) as http:
        assert (await http.get("/v1/tasks/cmd/output?follow=1")).status_code == 404
    await (await mt.thread("other").start(Call(int, "1"))).wait()
