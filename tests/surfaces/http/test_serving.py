"""The port, the environment, server.json: seed 001's Status API Server, Port Discovery."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import uvicorn
from tests.waiting import LIMIT

from meantime import Call, InvalidInput, Meantime
from meantime.blocking import Meantime as BlockingMeantime
from meantime.surfaces.http import http_settings, port_socket, uvicorn_server
from meantime.surfaces.http.http_settings import HttpSettings, in_force

from .conftest import OpenDoor, over_tcp

pytestmark = pytest.mark.anyio


def free_run(length: int) -> int:
    """The first of so many ports in a row that nobody uses, so that tests can run beside each other."""
    for start in range(20_000 + os.getpid() % 20_000, 60_000, length):
        with ExitStack() as held:
            try:
                for port in range(start, start + length):
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return start
    raise AssertionError("no ports")


def occupy(stack: ExitStack, first: int, count: int) -> None:
    for port in range(first, first + count):
        stack.enter_context(port_socket.bind("127.0.0.1", port))


@pytest.mark.behaviour("H3")
@pytest.mark.scenario("001", "Server starts on plugin init")
def test_the_port_is_5165_by_default():
    assert http_settings.PORT == 5165
    assert in_force(HttpSettings(), {}).port == 5165
    assert HttpSettings().host == "127.0.0.1"


@pytest.mark.behaviour("H3")
@pytest.mark.scenario("001", "Server retries next port on collision")
async def test_the_next_port_is_taken_on_a_collision(open_door: OpenDoor):
    first = free_run(10)
    with ExitStack() as held:
        occupy(held, first, 3)
        door = await open_door(port=first)
        assert door.port == first + 3


@pytest.mark.behaviour("H3")
@pytest.mark.scenario("001", "Server retries next port on collision")
async def test_the_system_chooses_the_port_after_ten_tries(open_door: OpenDoor):
    first = free_run(10)
    with ExitStack() as held:
        occupy(held, first, 10)
        door = await open_door(port=first)
        assert not first <= door.port < first + 10
        async with over_tcp(door.url) as http:
            assert (await http.get("/v1/health")).json()["status"] == "ok"


@pytest.mark.behaviour("H3")
def test_the_tries_end_with_the_last_port():
    with ExitStack() as held:
        for _ in range(3):
            held.enter_context(port_socket.bind("127.0.0.1", 65_534))


@pytest.mark.behaviour("H4")
@pytest.mark.scenario("001", "Server is disabled via environment variable")
def test_the_environment_moves_and_closes_the_door():
    seed, ours = {"ASYNCAGENTS_API_PORT": "6000"}, {"MEANTIME_API_PORT": "7000"}
    assert in_force(HttpSettings(), seed).port == 6000
    assert in_force(HttpSettings(), seed | ours).port == 7000
    assert in_force(HttpSettings(port=8000), seed | ours).port == 8000
    for name in ("ASYNCAGENTS_API_ENABLED", "MEANTIME_API_ENABLED"):
        assert not in_force(HttpSettings(), {name: "false"}).enabled
        assert in_force(HttpSettings(), {name: "true"}).enabled
    for wrong in ("x", "-1", "65536"):
        with pytest.raises(InvalidInput, match="ASYNCAGENTS_API_PORT"):
            in_force(HttpSettings(), {"ASYNCAGENTS_API_PORT": wrong})


@pytest.mark.behaviour("H4")
@pytest.mark.scenario("001", "Server is disabled via environment variable")
async def test_a_closed_door_leaves_everything_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASYNCAGENTS_API_ENABLED", "false")
    async with Meantime.open(tmp_path / "work.db") as mt, mt.serve() as door:
        assert (door.enabled, door.port, door.url) == (False, 0, "")
        assert await (await mt.thread("a").start(Call(int, "1"))).result() == 1
        assert not (tmp_path / "work.db.http").exists()


@pytest.mark.behaviour("H5")
@pytest.mark.scenario(
    "001",
    "Server starts on plugin init",
    "Server writes discovery file on start",
    "server.json created on server start",
    "server.json deleted on graceful shutdown",
    "server.json enables external tool discovery",
)
async def test_server_json_is_there_while_the_door_is_open(tmp_path: Path):
    path = tmp_path / "work.db.http" / "server.json"
    async with Meantime.open(tmp_path / "work.db") as mt:
        async with mt.serve(port=0) as door:
            found = json.loads(path.read_text())
            assert set(found) == {"port", "pid", "startedAt", "url"}
            assert (found["port"], found["pid"], found["url"]) == (door.port, os.getpid(), door.url)
            assert found["startedAt"].endswith("Z")
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            async with over_tcp(found["url"]) as http:
                assert (await http.get("/v1/health")).status_code == 200
            assert sorted(os.listdir(path.parent)) == ["server.json", "token"], "nothing half-written"
        assert not path.exists()


@pytest.mark.behaviour("H5")
async def test_somebody_elses_server_json_stays(open_door: OpenDoor, tmp_path: Path):
    door = await open_door(folder=tmp_path)
    other = {"port": 1, "pid": 1, "startedAt": "", "url": ""}
    (tmp_path / "server.json").write_text(json.dumps(other))
    await door.close()
    assert json.loads((tmp_path / "server.json").read_text()) == other


@pytest.mark.behaviour("H3")
async def test_the_ipv6_loopback_is_served(open_door: OpenDoor):
    door = await open_door(host="::1")
    async with over_tcp(door.url) as http:
        assert (await http.get("/v1/tasks")).status_code == 200


async def test_an_idle_server_sleeps_until_it_is_told_to_leave(
    open_door: OpenDoor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(uvicorn_server, "SECOND", 3600)
    looks: list[int] = []

    async def look(self: uvicorn.Server, counter: int) -> bool:
        looks.append(counter)
        return self.should_exit

    monkeypatch.setattr(uvicorn.Server, "on_tick", look)
    door = await open_door()
    assert len(looks) == 1
    async with asyncio.timeout(LIMIT):
        await door.close()
    assert len(looks) == 2


async def test_a_folder_that_cannot_be_used_is_named(mt: Meantime, tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="cannot keep its files"):
        await mt.serve(port=0, folder=tmp_path / "file" / "http")


async def test_an_address_that_is_not_ours_is_named(mt: Meantime):
    with pytest.raises(InvalidInput, match=r"192\.0\.2\.1"):
        await mt.serve(port=0, host="192.0.2.1", allow_remote=True)


@pytest.mark.behaviour("P12")
def test_a_remote_address_needs_to_be_meant():
    with pytest.raises(InvalidInput, match="other machines"):
        in_force(HttpSettings(host="0.0.0.0"), {})
    assert in_force(HttpSettings(host="0.0.0.0", allow_remote=True), {}).host == "0.0.0.0"
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        assert in_force(HttpSettings(host=host), {}).host == host


async def test_a_memory_ledger_keeps_its_token_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    async with Meantime.open(":memory:") as mt, mt.serve(port=0) as door:
        assert len(door.token) == 64
        assert os.listdir(tmp_path) == []


async def test_a_missing_extra_is_named(mt: Meantime, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "meantime.surfaces.http.uvicorn_server", raising=False)
    with pytest.raises(InvalidInput, match=r"pip install 'meantime\[server\]'") as caught:
        await mt.serve(port=0)
    assert caught.value.code == "extra_missing"


@pytest.mark.breadth
def test_the_door_without_async(tmp_path: Path):
    with BlockingMeantime.open(tmp_path / "work.db") as mt, mt.serve(port=0) as door:
        mt.thread("a").start(Call(int, "1")).result()
        assert httpx.get(f"{door.url}/v1/tasks", timeout=LIMIT).json()["total"] == 1
        assert len(door.thread_token("a")) > 64
    assert door.url == ""
