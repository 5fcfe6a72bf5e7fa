"""The stream of a server's events has a limit on each of them."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT

from meantime.integrations.opencode.errors import Away
from meantime.integrations.opencode.wire import api_client

pytestmark = [pytest.mark.anyio, pytest.mark.agents]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


async def test_a_server_whose_event_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(api_client, "MOST_EVENT", 1_000)

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + b'data: {"first":1}\n\ndata: ' + b"x" * 2_000)
        await writer.drain()
        await reader.read()  # until the client leaves
        writer.close()

    server = await asyncio.start_server(flood, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = api_client.ApiClient(f"http://127.0.0.1:{port}")
    found: list[bytes] = []

    async def read() -> None:
        async with asyncio.timeout(LIMIT), client.events() as events:
            async for data in events:
                found.append(data)

    try:
        with pytest.raises(Away, match="a line has more than 1000 bytes"):
            await read()
    finally:
        await client.close()
        server.close()
    assert found == [b'{"first":1}']
