"""A client that was made without us: fastmcp, with fastmcp-tasks. It is no dependency of ours, not even for
tests: `pip install fastmcp fastmcp-tasks` beside the rest, and this runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from daemon.conftest import Place
from meantime import Meantime

from .conftest import PATIENCE
from .speaking import COMMAND

tasks = pytest.importorskip("fastmcp_tasks.client", reason="fastmcp-tasks is not installed")
pytestmark = pytest.mark.anyio


@pytest.fixture(params=["stdio", "http"])
def wire(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def connected(wire: str, place: Place, mt: Meantime) -> AsyncIterator[Any]:
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

    if wire == "stdio":
        arguments = [*COMMAND[1:], "--thread", "foreign"]
        async with Client(StdioTransport(COMMAND[0], arguments, env=place.environ)) as client:
            yield client
        return
    async with mt.serve(port=0) as door:
        headers = {"Authorization": f"Bearer {door.thread_token('foreign')}"}
        async with Client(StreamableHttpTransport(f"{door.url}/mcp", headers=headers)) as client:
            yield client


async def test_it_calls_follows_and_cancels(wire: str, place: Place, mt: Meantime):
    async with connected(wire, place, mt) as client:
        assert "start" in [tool.name for tool in await client.list_tools()]
        done = await client.call_tool("start", {"command": "echo from a stranger"})
        assert done.content[0].text == "from a stranger\n"
        failed = await client.call_tool("start", {"command": "exit 3"}, raise_on_error=False)
        assert failed.is_error
        assert "exit code 3" in failed.content[0].text
        handle = await tasks.call_tool_task(client, "start", {"command": "sleep 60"})
        assert (await handle.status()).status == "working"
        await handle.cancel()
        assert (await handle.wait(timeout=PATIENCE)).status == "cancelled"
        listed = await client.call_tool("list", {"status": "all"})
        assert listed.content[0].text.count("\n") == 2
        assert len(listed.content) == 1  # it was told of all of them by asking
