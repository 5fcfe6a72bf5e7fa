"""A request may name the host in its target, too: `GET http://name/v1/tasks`. It is held to the same names as
the Host header, on a raw socket against the real server, with each of uvicorn's two parsers."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT
from uvicorn.protocols.http import auto
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from meantime import HttpDoor

from .conftest import OpenDoor

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]
FOREIGN = [
    "http://evil/v1/tasks",
    "http://evil.example:80/v1/tasks",
    "HTTP://evil/v1/tasks",
    "https://evil/",
    "http://127.0.0.1:{port}@evil/v1/tasks",
    "http://evil@127.0.0.1:{port}/v1/tasks",
    "http://127.0.0.1:1/",
]


@pytest.fixture(params=[HttpToolsProtocol, H11Protocol], ids=["httptools", "h11"])
async def door(
    request: pytest.FixtureRequest, open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
) -> HttpDoor:
    monkeypatch.setattr(auto, "AutoHTTPProtocol", request.param)
    return await open_door()


async def status(door: HttpDoor, target: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
    head = f"GET {target.format(port=door.port)} HTTP/1.1\r\nHost: 127.0.0.1:{door.port}\r\n"
    writer.write(f"{head}Authorization: Bearer {door.token}\r\nConnection: close\r\n\r\n".encode())
    line = await asyncio.wait_for(reader.readline(), LIMIT)
    writer.close()
    return int(line.split()[1])


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize("target", FOREIGN)
async def test_a_foreign_name_in_the_target_is_refused(door: HttpDoor, target: str):
    assert await status(door, target) == 421


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST"])
async def test_a_name_of_ours_in_the_target_is_answered(door: HttpDoor, name: str):
    assert await status(door, f"http://{name}:{{port}}/v1/tasks?limit=1") == 200
    assert await status(door, f"http://{name}:{{port}}/v1/unknown") == 404
