"""A daemon that does not take a wrap: the host is told why, whenever the connection is closed."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from tests.refusing import refusing

from meantime.surfaces.wrap import wrap_listener
from meantime.surfaces.wrap.host_pump import HostPump
from meantime.surfaces.wrap.wrap_listener import WrapListener

HELLO = {"version": "0", "thread": "", "order": {"headers": {}}}
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "wrap.sock"


class Host:
    """A host of MCP, with a wrap as its server."""

    def __init__(self, path: Path) -> None:
        wrap_stdin, self.stdin = os.pipe()
        self.stdout, wrap_stdout = os.pipe()
        pump = HostPump(wrap_stdin, wrap_stdout, str(path), HELLO, lambda: None, lambda *_: "")

        def run() -> None:
            try:
                pump.run()
            finally:
                os.close(wrap_stdout)
                os.close(wrap_stdin)

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def error(self) -> str:
        """Of a ping."""
        os.write(self.stdin, PING)
        with open(self.stdout, "rb", closefd=False) as answers:
            answer = json.loads(answers.readline())
        assert answer["id"] == 1
        return answer["error"]["message"]

    def leave(self) -> None:
        os.close(self.stdin)
        self._thread.join()
        os.close(self.stdout)


@pytest.fixture
def host(place: Path) -> Iterator[Host]:
    """Of a daemon that closes each connection at once."""
    with refusing(b"#refused Too many.\n", path=place):
        host = Host(place)
        try:
            yield host
        finally:
            host.leave()


def test_a_wrap_that_was_refused_before_it_said_hello_says_why(host: Host):
    assert host.error() == "Too many."
    assert host.error() == "Too many."


def test_a_wrap_whose_daemon_closes_without_a_word_answers_all_the_same(place: Path):
    with refusing(b"", path=place):
        host = Host(place)
        try:
            assert "Meantime's daemon" in host.error()
        finally:
            host.leave()


@pytest.mark.anyio
@pytest.mark.parametrize("most", [0, 1])
async def test_the_daemon_says_why_it_does_not_take_one(
    place: Path, monkeypatch: pytest.MonkeyPatch, most: int
):
    """The hello of this host is not one."""
    monkeypatch.setattr(wrap_listener, "MOST_WRAPS", most)
    listener = WrapListener(cast(Any, None), place)
    await listener.open()
    host = await asyncio.to_thread(Host, place)
    said = await asyncio.to_thread(host.error)
    await asyncio.to_thread(host.leave)
    await listener.close()
    full = "0 wraps are connected to Meantime's daemon already"
    assert said.startswith(full if most == 0 else "Meantime's daemon is of another version")
