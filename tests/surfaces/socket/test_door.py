"""The socket door: who may come in, how many, and what lies where its socket is to be."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.waiting import LIMIT

from meantime import InvalidInput, Meantime, Refused
from meantime.link.frames import PROTOCOL, Hello
from meantime.surfaces.socket import client_link, link_server

pytestmark = pytest.mark.anyio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "link"


@pytest.fixture
async def owner(path: Path) -> AsyncIterator[Meantime]:
    async with Meantime.open(":memory:", link=path) as owner:
        yield owner


def hello(executor: str = "x_1", protocol: int = PROTOCOL) -> bytes:
    return msgspec.json.encode(Hello(protocol, "0", executor, [])) + b"\n"


async def said(path: Path, *lines: bytes) -> list[bytes]:
    """Everything that the owner answers until it closes the connection."""
    reader, writer = await asyncio.open_unix_connection(path)
    for line in lines:
        writer.write(line)
    answer = await asyncio.wait_for(reader.read(), LIMIT)
    writer.close()
    return answer.splitlines()


@pytest.mark.behaviour("P12")
async def test_the_socket_is_private(owner: Meantime, path: Path):
    assert stat.S_ISSOCK(path.lstat().st_mode)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600


@pytest.mark.behaviour("P12")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
async def test_another_user_gets_nothing(owner: Meantime, path: Path):
    """Also where the folder and the socket stand open."""
    for place in (path, *path.parents):
        if place != Path("/") and place.stat().st_uid == 0:
            place.chmod(place.stat().st_mode | 0o777 if place == path else place.stat().st_mode | 0o005)
    program = (
        "import os, socket, sys; os.setgid(65534); os.setuid(65534)\n"
        f"talk = socket.socket(socket.AF_UNIX); talk.settimeout({LIMIT}); talk.connect(sys.argv[1])\n"
        "try: talk.sendall(sys.argv[2].encode() + b'\\n'); print(talk.recv(100))\n"
        "except (ConnectionResetError, BrokenPipeError): print(b'')\n"
    )
    asked = [sys.executable, "-c", program, os.fspath(path), hello().decode().strip()]
    done = await asyncio.to_thread(subprocess.run, asked, capture_output=True, text=True, timeout=LIMIT)
    assert done.stdout == "b''\n", done.stderr


@pytest.mark.behaviour("P12")
async def test_a_client_tells_nothing_to_another_users_owner(
    owner: Meantime, path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Whoever lays a socket where ours is looked for would get our commands, and our environment."""
    monkeypatch.setattr("meantime.client.owner_connection.peer_credentials", lambda _: (1, 12345))
    with pytest.raises(Refused, match="served by user 12345") as caught:
        await Meantime.connect(path)
    assert caught.value.code == "other_user"


@pytest.mark.parametrize("what", ["file", "link", "folder"])
async def test_what_is_no_socket_is_never_replaced(path: Path, tmp_path: Path, what: str):
    target = tmp_path / "target"
    target.write_text("precious")
    if what == "file":
        path.write_text("precious")
    elif what == "link":
        path.symlink_to(target)
    else:
        path.mkdir()
    with pytest.raises(InvalidInput, match="not a socket"):
        await Meantime.open(":memory:", link=path)
    assert target.read_text() == "precious"
    assert path.is_dir() if what == "folder" else path.read_text() == "precious"


async def test_another_owners_socket_is_not_taken(owner: Meantime, path: Path):
    with pytest.raises(InvalidInput, match="Another program listens"):
        await Meantime.open(":memory:", link=path)
    async with Meantime.connect(path) as mt:
        assert await mt.stats() is not None


async def test_a_socket_that_was_left_behind_is_replaced(path: Path):
    left = socket.socket(socket.AF_UNIX)
    left.bind(os.fspath(path))
    left.close()
    async with Meantime.open(":memory:", link=path), Meantime.connect(path) as mt:
        assert await mt.stats() is not None
    assert not path.exists()


async def test_a_long_path_is_no_trouble(tmp_path: Path):
    path = tmp_path / ("x" * 100) / "link"
    async with Meantime.open(":memory:", link=path), Meantime.connect(path) as mt:
        assert await mt.stats() is not None


@pytest.mark.behaviour("P10")
async def test_one_process_too_many_is_refused(owner: Meantime, path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(link_server, "MAX_LINKS", 2)
    async with Meantime.connect(path), Meantime.connect(path) as second:
        with pytest.raises(Refused, match="2 processes are connected") as caught:
            await Meantime.connect(path)
        assert caught.value.code == "too_many"
        assert await second.stats() is not None


async def test_who_does_not_say_hello_is_let_go(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(client_link, "HELLO_WITHIN", 0.05)
    async with Meantime.open(":memory:", link=path):
        assert await said(path) == []


@pytest.mark.parametrize(
    "line",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"[]\n",
        b'["nothing"]\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'["ping"]\n',
        hello("../../etc"),
        hello(""),
    ],
)
async def test_who_does_not_speak_the_protocol_is_let_go(owner: Meantime, path: Path, line: bytes):
    assert await said(path, line) == []


async def test_who_says_hello_twice_is_let_go(owner: Meantime, path: Path):
    await said(path, hello("x_1"), hello("x_2"))
    assert owner._link is not None
    assert set(owner._link.executors._known) == {"x_1"}


async def test_another_version_is_told_what_to_do(owner: Meantime, path: Path):
    (answer,) = await said(path, hello(protocol=99))
    kind, error = msgspec.json.decode(answer)
    assert (kind, error["code"]) == ("refuse", "other_version")
    assert "meantime up" in error["hint"]


async def test_a_second_connection_of_an_executor_takes_its_place(owner: Meantime, path: Path):
    first, to_first = await asyncio.open_unix_connection(path)
    to_first.write(hello())
    await asyncio.wait_for(first.readline(), LIMIT)
    second, to_second = await asyncio.open_unix_connection(path)
    to_second.write(hello())
    await asyncio.wait_for(second.readline(), LIMIT)
    assert await asyncio.wait_for(first.read(), LIMIT) == b""
    assert owner._link is not None
    (executor,) = owner._link.executors.about()
    assert executor["connected"]
    to_first.close()
    to_second.close()
