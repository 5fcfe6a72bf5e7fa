"""A server that asks for a login: nobody is left waiting, and nothing is counted as unread for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.waiting import LIMIT

from meantime.ports.wrapped_server import LoginChallenge, WrapOrder
from meantime.surfaces.wrap.http_reply import HttpReply
from meantime.surfaces.wrap.negotiated_server import PROBE, NegotiatedServer
from meantime.surfaces.wrap.protocol_versions import WITHOUT_HANDSHAKE

pytestmark = pytest.mark.anyio
CHALLENGE = LoginChallenge(401, "Bearer", b"{}")
ORDER = WrapOrder(words=("s",), cwd="/", env={})
META = {"io.modelcontextprotocol/protocolVersion": WITHOUT_HANDSHAKE}


class Server:
    """The server, those who start it, and the end that hears it: what each was told."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.challenged: list[int | str | None] = []

    def start(self, order: WrapOrder, end: Any) -> Any:
        return self

    def send(self, line: bytes) -> None:
        self.sent.append(msgspec.json.decode(line))

    def on_challenge(self, id: int | str | None, challenge: LoginChallenge, why: str) -> None:
        self.challenged.append(id)


def line_of(method: str, params: dict[str, Any], **id: int) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **id, "method": method, "params": params})


async def test_each_request_that_waited_for_our_own_is_asked_for_a_login():
    server = Server()
    negotiated = NegotiatedServer(server, ORDER, server)  # pyright: ignore[reportArgumentType]
    for id in (1, 2, 3):
        negotiated.send(line_of("tools/list", {"_meta": META}, id=id))
    negotiated.send(line_of("notifications/cancelled", {"requestId": 9}))
    assert [one["id"] for one in server.sent] == [PROBE]
    negotiated.on_challenge(PROBE, CHALLENGE, "a login is needed")
    assert server.challenged == [1, 2, 3]


async def test_a_refused_handshake_is_asked_for_a_login_with_all_that_came_after_it():
    server = Server()
    negotiated = NegotiatedServer(server, ORDER, server)  # pyright: ignore[reportArgumentType]
    negotiated.send(line_of("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}}, id=1))
    negotiated.on_line(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": ""}}))
    negotiated.send(line_of("tools/list", {}, id=2))
    negotiated.on_challenge(PROBE, CHALLENGE, "a login is needed")
    assert server.challenged == [1, 2]


class Unread:
    """The bytes of a reply that its host has not read, as the host's connection counts them."""

    def __init__(self, requests: int) -> None:
        self.size = 0
        self.reply = HttpReply(requests, self._taken)
        self.has_left = asyncio.Event()

    def _taken(self, size: int) -> None:
        self.size -= size

    def put(self, message: bytes, *, is_answer: bool = False) -> None:
        self.reply.put(message, is_answer=is_answer)
        self.size += len(message)

    async def serve(self, *failing: Exception) -> None:
        async def receive() -> dict[str, Any]:
            await self.has_left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            for problem in failing:
                raise problem

        async with asyncio.timeout(LIMIT):
            await self.reply.serve([], receive, send)


async def test_a_message_before_a_challenge_is_given_back():
    unread = Unread(2)
    unread.put(b'{"method":"notifications/message"}')
    unread.put(b'{"method":"notifications/message"}')
    unread.reply.challenge(CHALLENGE)
    await unread.serve()
    assert unread.size == 0


async def test_a_message_to_a_host_that_left_before_its_stream_began_is_given_back():
    unread = Unread(1)
    unread.put(b'{"method":"notifications/message"}')
    unread.reply.is_closed = True
    await unread.serve()
    assert unread.size == 0


@pytest.mark.parametrize("is_answer", [True, False])
async def test_a_message_that_could_not_be_sent_is_given_back(is_answer: bool):
    unread = Unread(1)
    unread.put(b'{"id":1,"result":{}}', is_answer=is_answer)
    with pytest.raises(OSError, match="gone"):
        await unread.serve(OSError("gone"))
    assert unread.size == 0


async def test_an_answer_and_a_stream_are_counted_once():
    for messages in ([True], [False, False, True]):
        unread = Unread(1)
        for is_answer in messages:
            unread.put(b'{"id":1,"result":{}}', is_answer=is_answer)
        await unread.serve()
        assert unread.size == 0
