"""/v1/info says who is told over MCP, and that it is class C: at least once, with a stable id (P5)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.waiting import LIMIT, until

from daemon.conftest import Place
from meantime import HttpDoor, Meantime
from meantime.surfaces.mcp import client_conversation

from .speaking import Raw
from .test_http import connected, door  # noqa: F401  a fixture

pytestmark = pytest.mark.anyio


async def hosts(door: HttpDoor, token: str | None = None) -> list[dict[str, Any]]:  # noqa: F811
    async with httpx.AsyncClient(base_url=door.url, trust_env=False, timeout=LIMIT) as http:
        headers = {"Authorization": f"Bearer {token or door.token}"}
        return (await http.get("/v1/info", headers=headers)).json()["hosts"]


@pytest.mark.breadth
@pytest.mark.behaviour("P5")
async def test_a_client_over_http_is_listed_as_class_c(door: HttpDoor, era: str, mt: Meantime):  # noqa: F811
    assert await hosts(door) == []
    async with connected(door, era, path="/mcp?thread=conv-1") as client:
        await client.call_tool("list", {})
        assert await hosts(door) == [{"thread": "conv-1", "class": "C", "kind": "mcp"}]
        assert await hosts(door, door.thread_token("conv-1")) != []
        assert await hosts(door, door.thread_token("other")) == []


@pytest.mark.breadth
async def test_who_has_not_called_for_long_is_not_there(
    door: HttpDoor,  # noqa: F811
    era: str,
    monkeypatch: pytest.MonkeyPatch,
):
    async with connected(door, era, path="/mcp?thread=conv-1") as client:
        await client.call_tool("list", {})
        monkeypatch.setattr(client_conversation, "RECENT", 0.0)
        assert await hosts(door) == []


@pytest.mark.breadth
@pytest.mark.behaviour("P5")
def test_a_client_of_stdio_is_listed_as_class_c(place: Place):
    place.up()
    with Raw(place, "--thread", "conv-1") as raw:
        raw.hello()
        told = [{"thread": "conv-1", "class": "C", "kind": "mcp"}]
        until(lambda: place.ask("GET", "/v1/info")["hosts"] == told, "it says so when it has loaded")
        place.kill()
        place.up()
        until(lambda: place.ask("GET", "/v1/info")["hosts"] == told, "the next daemon knows it, too")
    until(lambda: place.ask("GET", "/v1/info")["hosts"] == [], "it is gone")
