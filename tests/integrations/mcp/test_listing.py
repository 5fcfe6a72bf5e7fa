"""What tools a server has can be asked from everywhere: here, over the link, and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.waiting import LIMIT

from meantime import InvalidInput, Meantime, Refused, ToolInfo

from .conftest import PATIENT, Peer

pytestmark = pytest.mark.anyio


@pytest.fixture
async def mt(peer: Peer, era: bool, tmp_path: Path) -> AsyncIterator[Meantime]:
    servers = {"s": peer.server(modern=era), "broken": Peer(tmp_path / "other").server("dies")}
    async with Meantime.open(":memory:", settings=PATIENT, servers=servers, link=tmp_path / "link") as mt:
        yield mt


async def test_over_the_link_it_is_the_same(mt: Meantime, tmp_path: Path):
    async with Meantime.connect(tmp_path / "link") as connected:
        tools = await connected.tools("s")
        assert ToolInfo("s", "echo", "It does echo.", {"type": "object"}) in tools
        assert tools == await mt.tools("s")
        with pytest.raises(InvalidInput, match="no MCP server 'x'"):
            await connected.tools("x")
        with pytest.raises(Refused, match="KeyError: 'TOKEN'"):
            await connected.tools("broken")


async def test_the_tools_of_a_server_are_listed_over_http(mt: Meantime):
    async with (
        mt.serve(port=0) as door,
        httpx.AsyncClient(base_url=door.url, trust_env=False, timeout=LIMIT) as http,
    ):
        found = (await http.get("/v1/servers/s/tools")).json()
        echo = {
            "name": "echo",
            "tool": "s/echo",
            "description": "It does echo.",
            "inputSchema": {"type": "object"},
            "asTask": False,
        }
        assert found["server"] == "s"
        assert echo in found["tools"]
        unknown = await http.get("/v1/servers/x/tools")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
        broken = await http.get("/v1/servers/broken/tools")
        assert (broken.status_code, broken.json()["code"]) == (409, "server_not_started")
