"""The same app on a unix socket: private from its first moment, whole or not there, removed if it is ours."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from meantime import Call, InvalidInput, Meantime, Thread
from meantime.surfaces.http import client_limits, routes
from meantime.surfaces.unix_socket import bind_unix
from meantime.system.platform import LONGEST_SOCKET
from meantime.testing import FakeClock
from runtimes import runtime_of

from .conftest import OpenDoor, over_socket, over_tcp

pytestmark = pytest.mark.anyio


async def test_a_program_of_this_user_reads_and_writes_without_a_token(open_door: OpenDoor, places: Path):
    door = await open_door(socket=places / "http.sock", auth="strict")
    assert door.socket == places / "http.sock"
    async with over_socket(places / "http.sock") as local:
        task = (await local.post("/v1/tasks", json={"command": ["true"]})).json()
        assert (await local.get(f"/v1/tasks/{task['id']}/wait")).json()["status"] == "completed"
        assert (await local.post("/v1/limits", json={"total": 7})).json()["total"] == 7
        assert (await local.get("/v1/info")).json()["url"] == door.url
        assert (await local.post("/v1/tasks", content=b"{}")).status_code == 415
    async with over_tcp(door.url) as http:
        assert (await http.get("/v1/tasks")).status_code == 401


async def test_any_host_name_is_right_there(open_door: OpenDoor, places: Path):
    await open_door(socket=places / "http.sock")
    async with over_socket(places / "http.sock") as local:
        for name in ("meantime", "localhost", "anything.example"):
            assert (await local.get("/v1/stats", headers={"Host": name})).status_code == 200


@pytest.mark.behaviour("P12")
@pytest.mark.parametrize("header", ["Origin", "X-Forwarded-For", "Via"])
async def test_a_client_that_speaks_for_others_needs_a_token_there_too(
    open_door: OpenDoor, places: Path, header: str
):
    """A proxy before the socket would otherwise let everybody in."""
    door = await open_door(socket=places / "http.sock")
    async with over_socket(places / "http.sock", headers={header: "http://evil.example"}) as local:
        assert (await local.get("/v1/tasks")).status_code == 401
        token = {"Authorization": f"Bearer {door.token}"}
        assert (await local.get("/v1/tasks", headers=token)).status_code == 200


@pytest.mark.behaviour("P12")
async def test_a_threads_token_is_bound_there_too(open_door: OpenDoor, places: Path, tasks: None):
    door = await open_door(socket=places / "http.sock")
    token = {"Authorization": f"Bearer {door.thread_token('conv-1')}"}
    async with over_socket(places / "http.sock", headers=token) as agent:
        assert (await agent.get("/v1/tasks/mine")).status_code == 200
        assert (await agent.get("/v1/tasks/theirs")).status_code == 404
        assert (await agent.get("/v1/tasks", headers={"Authorization": "Bearer x"})).status_code == 401


@pytest.mark.behaviour("P12")
async def test_another_user_is_403_whatever_it_brings(
    open_door: OpenDoor, places: Path, monkeypatch: pytest.MonkeyPatch
):
    door = await open_door(socket=places / "http.sock")
    monkeypatch.setattr(client_limits, "peer_uid", lambda transport: os.geteuid() + 1)
    async with over_socket(places / "http.sock") as local:
        for path in ("/v1/health", "/v1/tasks", f"/~{door.token}/v1/tasks", "/v1/codes/exchange", "/"):
            answer = await local.get(path)
            assert (answer.status_code, answer.json()["code"]) == (403, "other_user")
    assert {"/v1/health", "/v1/codes/exchange"} == routes.OPEN_PATHS


@pytest.mark.behaviour("P12")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
async def test_the_kernel_itself_lets_no_other_user_connect(open_door: OpenDoor, places: Path):
    await open_door(socket=places / "http.sock")
    os.chmod(places, 0o755)  # the socket is private by itself
    code = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534)\n"
        "try: socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
        "except PermissionError: print('no')"
    )
    run = [sys.executable, "-I", "-c", code, str(places / "http.sock")]
    found = await asyncio.to_thread(subprocess.run, run, capture_output=True, text=True)
    assert found.stdout == "no\n", found.stderr


@pytest.mark.behaviour("P12")
def test_it_is_private_from_its_first_moment(places: Path, monkeypatch: pytest.MonkeyPatch):
    modes: list[int] = []
    real = socket.socket.listen

    def listen(self: socket.socket, *args: Any) -> None:
        modes.extend(stat.S_IMODE(entry.stat().st_mode) for entry in places.iterdir())
        real(self, *args)

    monkeypatch.setattr(socket.socket, "listen", listen)
    monkeypatch.setattr(os, "chmod", lambda *args: None)  # born so, not made so afterwards
    before = os.umask(0)
    try:
        bound = bind_unix(places / "http.sock")
    finally:
        os.umask(before)
    assert modes == [0o600]
    assert [entry.name for entry in places.iterdir()] == ["http.sock"]
    bound.listening.close()


def test_a_folder_that_is_missing_is_made_private(places: Path):
    bound = bind_unix(places / "a" / "http.sock")
    assert stat.S_IMODE((places / "a").stat().st_mode) == 0o700
    bound.listening.close()


async def test_what_was_left_behind_is_replaced_and_what_lives_is_not(open_door: OpenDoor, places: Path):
    path = places / "http.sock"
    left = bind_unix(path)
    left.listening.close()
    door = await open_door(socket=path)
    async with over_socket(path) as local:
        assert (await local.get("/v1/health")).status_code == 200
    with pytest.raises(InvalidInput, match="Another program listens"):
        await open_door(socket=path)
    async with over_socket(path) as local:  # and it still does
        assert (await local.get("/v1/health")).status_code == 200
    await door.close()
    assert not path.exists()
    assert os.listdir(places) == []


async def test_only_our_own_is_removed(open_door: OpenDoor, places: Path):
    path = places / "http.sock"
    door = await open_door(socket=path)
    path.unlink()
    later = bind_unix(path)
    await door.close()
    assert path.is_socket()
    later.remove()
    assert not path.exists()
    later.listening.close()


def test_a_file_that_is_no_socket_stays(places: Path):
    path = places / "precious"
    path.write_text("data")
    with pytest.raises(InvalidInput, match="not a socket"):
        bind_unix(path)
    assert path.read_text() == "data"
    with pytest.raises(InvalidInput, match="cannot be opened"):
        bind_unix(path / "below")
    assert os.listdir(places) == ["precious"]


async def test_a_long_path_works(open_door: OpenDoor, places: Path):
    path = places / ("d" * 90) / ("e" * 90) / "http.sock"
    assert len(os.fsencode(path)) > LONGEST_SOCKET
    door = await open_door(socket=path)
    folder = os.open(path.parent, os.O_RDONLY)
    async with over_socket(Path(f"/proc/self/fd/{folder}/http.sock")) as local:
        assert (await local.get("/v1/health")).status_code == 200
    os.close(folder)
    with pytest.raises(InvalidInput, match="Another program listens"):
        bind_unix(path)
    await door.close()
    assert not path.exists()


async def test_tcp_can_be_left_out(places: Path, tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        async with mt.serve(tcp=False, socket=places / "http.sock") as door:
            assert (door.enabled, door.port, door.url) == (True, 0, "")
            assert repr(door) == f"<HttpDoor {places / 'http.sock'}>"
            assert os.listdir(tmp_path / "work.db.http") == ["token"]
            async with over_socket(places / "http.sock") as local:
                assert (await local.get("/v1/info")).json()["url"] == ""
        assert not (places / "http.sock").exists()


@pytest.mark.behaviour("H4")
async def test_the_environment_turns_off_tcp_alone(
    open_door: OpenDoor, places: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ASYNCAGENTS_API_ENABLED", "false")
    door = await open_door(socket=places / "http.sock")
    assert (door.enabled, door.port) == (True, 0)
    async with over_socket(places / "http.sock") as local:
        assert (await local.get("/v1/health")).status_code == 200
    assert not (await open_door()).enabled


async def test_a_door_that_cannot_have_its_socket_leaves_nothing(open_door: OpenDoor, places: Path):
    (places / "file").write_text("")
    with pytest.raises(InvalidInput):
        await open_door(socket=places / "file")
    with pytest.raises(InvalidInput):
        await open_door(socket=places / "file" / "below", tcp=False)
    door = await open_door(socket=places / "http.sock")
    assert door.socket is not None


@pytest.mark.behaviour("H6")
async def test_those_who_wait_there_are_answered_when_it_closes(
    open_door: OpenDoor, places: Path, thread: Thread, mt: Meantime, clock: FakeClock
):
    door = await open_door(socket=places / "http.sock")
    async with over_socket(places / "http.sock") as local:
        asked = asyncio.create_task(local.get("/v1/threads/conv-1/wake"))
        await clock.until(lambda: runtime_of(mt).waking._sleepers.get("conv-1"))
        await asyncio.wait_for(door.close(), LIMIT)
        assert (await asked).status_code == 204
    await (await thread.start(Call(int, "1"))).wait()


def test_another_loop_can_serve_it(places: Path):
    """uvloop takes a unix socket for what it is only if it is told so."""
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with (
            Meantime.open(":memory:") as mt,
            mt.serve(port=0, socket=places / "http.sock"),
            over_socket(places / "http.sock") as local,
        ):
            answer = await local.post("/v1/tasks", json={"command": ["true"]})
            assert answer.status_code == 201
        assert os.listdir(places) == []

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
