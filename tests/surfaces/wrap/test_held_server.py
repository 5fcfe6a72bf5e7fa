"""Between an end of a wrapped server and its next start there is a rest. Requests wait for the end of a short
one, and are refused during a long one with the time that it takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from itertools import count
from typing import Any, cast

import pytest
from msgspec import Raw

from meantime.kernel.errors import InvalidInput
from meantime.ports.wrapped_server import ServerEnd, WrapOrder, WrappedServers
from meantime.surfaces.wrap import held_server
from meantime.surfaces.wrap.held_server import FIRST_WAIT, MOST_RESTED, HeldServer
from meantime.surfaces.wrap.repeated_requests import RepeatedRequests

pytestmark = pytest.mark.anyio
ORDER = WrapOrder(words=("server",), cwd="/", env={})
END = "It ended with exit code 3."


class Started:
    """A server that keeps what it is sent."""

    name, is_open = "scripted", True

    def __init__(self) -> None:
        self.lines: list[Any] = []

    def send(self, line: bytes) -> None:
        self.lines.append(json.loads(line))

    def authorize(self, authorization: str) -> None: ...

    async def close(self) -> None: ...


class Servers:
    def __init__(self) -> None:
        self.started: list[Started] = []
        self.broken = False

    def start(self, order: WrapOrder, end: ServerEnd) -> Started:
        if self.broken:
            raise InvalidInput("There is no such server.")
        self.started.append(Started())
        return self.started[-1]


class Session:
    """The end of a session, of which only the ends of the server are kept."""

    def __init__(self) -> None:
        self.gone = asyncio.get_running_loop().create_future()

    def on_gone(self, why: str) -> None:
        self.gone.set_result(why)


def held(servers: Servers, session: Session | None = None, initialize: bytes = b"") -> HeldServer:
    numbers = count(100)
    return HeldServer(
        cast("WrappedServers", servers),
        ORDER,
        cast("ServerEnd", session or Session()),
        Raw(initialize),
        RepeatedRequests(()),
        lambda method: next(numbers),
    )


def line(id: int, method: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": {}}).encode()


class LoopTime:
    """The time of the event loop, which stands still until it is turned."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time()
        monkeypatch.setattr(self._loop, "time", lambda: self._now)

    async def turn(self, seconds: float) -> None:
        """Returns when every timer until then has been called."""
        self._now += seconds
        reached = asyncio.Event()
        self._loop.call_at(self._now, reached.set)
        await reached.wait()


@pytest.fixture
async def time(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LoopTime]:
    with monkeypatch.context() as patched:
        yield LoopTime(patched)


async def test_requests_after_an_end_wait_for_the_next_start_and_keep_their_order(time: LoopTime):
    servers = Servers()
    server = held(servers)
    server.ended(END)
    assert [server.send(line(id, "ping"), "ping") for id in (1, 2)] == [True, True]
    assert (servers.started, server.is_awaited) == ([], True), "it rests"
    await time.turn(FIRST_WAIT)
    assert [sent["id"] for sent in servers.started[0].lines] == [1, 2]
    assert (server.is_there, server.is_awaited) == (True, False)


async def test_the_handshake_is_repeated_before_what_waited(time: LoopTime):
    servers = Servers()
    server = held(servers, initialize=b'{"protocolVersion":"2025-06-18"}')
    server.ended(END)
    assert server.send(line(1, "tools/call"), "tools/call")
    await time.turn(FIRST_WAIT)
    assert [sent["method"] for sent in servers.started[0].lines] == ["initialize"]
    assert server.greeted(Raw()) == ""
    methods = [sent["method"] for sent in servers.started[0].lines]
    assert methods == ["initialize", "notifications/initialized", "tools/call"]
    await server.close()


async def test_a_handshake_of_the_host_that_waited_is_the_only_one(time: LoopTime):
    servers = Servers()
    server = held(servers, initialize=b'{"protocolVersion":"2025-06-18"}')
    server.ended(END)
    assert server.send(line(1, "initialize"), "initialize")
    await time.turn(FIRST_WAIT)
    assert [sent["id"] for sent in servers.started[0].lines] == [1]


async def test_a_long_rest_is_told_with_its_time(monkeypatch: pytest.MonkeyPatch, time: LoopTime):
    monkeypatch.setattr(held_server, "FIRST_WAIT", MOST_RESTED + 5)
    server = held(servers := Servers())
    server.ended(END)
    for _ in range(2):
        assert not server.send(line(1, "ping"), "ping")
        assert server.why == f"{END} It is started again in 7 s; call again."
    assert (servers.started, server.is_awaited) == ([], False)


async def test_what_waited_is_given_up_where_the_server_cannot_be_started(time: LoopTime):
    servers, session = Servers(), Session()
    server = held(servers, session)
    server.ended(END)
    assert server.send(line(1, "ping"), "ping")
    servers.broken = True
    await time.turn(FIRST_WAIT)
    assert await session.gone == "There is no such server."


async def test_a_session_that_closes_starts_nothing(time: LoopTime):
    server = held(servers := Servers())
    server.ended(END)
    assert server.send(line(1, "ping"), "ping")
    await server.close()
    assert not server.is_awaited
    await time.turn(FIRST_WAIT)
    assert servers.started == []
