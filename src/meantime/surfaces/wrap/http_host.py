"""A host that reaches its wrapped server over Streamable HTTP: one session of MCP, whose messages come and go
in requests of HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Raw
from msgspec.structs import replace
from starlette.types import Receive, Send

from meantime.ports.wrapped_server import LoginChallenge

from .host_notifications import PROGRESS
from .host_session import HostSession
from .http_reply import Headers, HttpReply, UnsentMessages
from .open_requests import TOKEN
from .protocol_versions import LISTEN, SUBSCRIPTION, meta_of, with_meta
from .raw_messages import (
    CANCELLED,
    NOTHING,
    RawMessage,
    answer,
    encoded,
    key,
    notification,
    parts,
    raw,
    read,
    refusal,
)
from .wrap_hello import WrapHello, WrapParts

HIGH_WATER = 1 << 20  # bytes that a host may leave unread before its server is not read any more
REQUEST_CANCELLED = -32800  # as the MCP SDK says it
IDLE = 600.0  # seconds without a request, after which a host has left


class HttpRequest(NamedTuple):
    """A request of the host that is not answered."""

    reply: HttpReply
    id: Raw  # the host's own
    method: str
    token: Raw  # for progress; ours is the id, because two clients may choose the same


class HttpHost:
    """`ended` is called when the host has left."""

    def __init__(self, shared: WrapParts, hello: WrapHello, ended: Callable[[], None]) -> None:
        self.session = HostSession(shared, hello, self._send, challenged=self._challenged)
        self._ended = ended
        self._open: dict[int, HttpRequest] = {}  # by our id
        self._count = 0
        self._replies: dict[HttpReply, None] = {}  # open requests of HTTP, the oldest first
        self._listening: HttpReply | None = None
        self._unsent = UnsentMessages()
        self._unread = 0  # bytes
        self._timer: asyncio.TimerHandle | None = None
        self.has_failed = False  # its handshake

    # -- requests of HTTP

    async def post(
        self, messages: Sequence[RawMessage], headers: Headers, receive: Receive, send: Send, *, cuts: bool
    ) -> None:
        """With a request among them. `cuts`: closing the connection cancels it, as without a handshake."""
        requests = [one for one in messages if one.is_request]
        reply = HttpReply(len(requests), self._taken)
        ids = range(self._count + 1, self._count + 1 + len(requests))
        self._count += len(requests)
        for id, one in zip(ids, requests, strict=True):
            token = meta_of(one.params).get(TOKEN, NOTHING)
            self._open[id] = HttpRequest(reply, one.id.copy(), one.method, token.copy())
            params = with_meta(one.params, {**meta_of(one.params), TOKEN: raw(id)}) if token else one.params
            self.session.take(replace(one, id=raw(id), params=params))
        self.take([one for one in messages if not one.is_request])
        try:
            await self._serve(reply, headers, receive, send)
        finally:
            for id in ids if cuts else ():
                if self._open.pop(id, None) is not None:
                    params = raw({"requestId": id, "reason": "The connection was closed."})
                    self.session.take(RawMessage(method=CANCELLED, params=params))

    def take(self, messages: Sequence[RawMessage]) -> None:
        """Notifications and answers of the host."""
        for one in messages:
            if one.method == CANCELLED:
                self._cancelled(parts(one.params))
            else:
                self.session.take(one)
        self.wait()

    async def listen(self, headers: Headers, receive: Receive, send: Send) -> bool:
        """The stream for what the server says by itself. False: there is one."""
        if self._listening is not None:
            return False
        reply = self._listening = HttpReply(None, self._taken)
        for message in self._unsent.take():
            self._put(reply, message)
        try:
            await self._serve(reply, headers, receive, send)
        finally:
            self._listening = None
        return True

    async def _serve(self, reply: HttpReply, headers: Headers, receive: Receive, send: Send) -> None:
        self.stop_waiting()
        self._replies[reply] = None
        try:
            await reply.serve(headers, receive, send)
        finally:
            del self._replies[reply]
            self.wait()

    def _cancelled(self, params: dict[str, Raw]) -> None:
        """A request that is cancelled has no answer, but its request of HTTP must have an end."""
        wanted = key(params.get("requestId", NOTHING))
        named = [id for id, one in self._open.items() if key(one.id) == wanted]
        if (
            len(named) != 1
        ):  # without sessions two clients may have the same id: neither is to end the other's
            return
        found = named[0]
        told = encoded({**params, "requestId": raw(found)})
        self.session.take(RawMessage(method=CANCELLED, params=told))
        left = self._open.pop(found, None)
        if left is not None and not left.reply.is_closed:
            self._put(left.reply, refusal(left.id, REQUEST_CANCELLED, "Request cancelled"), is_answer=True)

    # -- from the session

    def _send(self, data: bytes, answers: Raw | None) -> bool:
        """False: nobody reads this any more."""
        if answers is None:
            self._tell(data)
            return True
        number = key(answers)
        found = self._open.pop(number, None) if isinstance(number, int) else None
        if found is None or found.reply.is_closed:
            return False
        (message,) = read(data)
        self.has_failed = bool(message.error)
        result = message.result
        if found.method == LISTEN and result:
            result = with_meta(result, {**meta_of(result), SUBSCRIPTION: found.id})
        self._put(found.reply, answer(found.id, result, message.error), is_answer=True)
        return True

    def _tell(self, data: bytes) -> None:
        """To the host, which has not asked for it: with the answer that it belongs to, if that is known."""
        (message,) = read(data)
        asked = self._about(message)
        if asked is not None and SUBSCRIPTION.encode() in bytes(message.params):
            meta = {**meta_of(message.params), SUBSCRIPTION: asked.id}
            data = notification(message.method, with_meta(message.params, meta))
        elif asked is not None and message.method == PROGRESS:
            data = notification(PROGRESS, encoded({**parts(message.params), TOKEN: asked.token}))
        found = asked.reply if asked is not None else self._listening
        if found is None or found.is_closed:
            self._unsent.add(data)
        else:
            self._put(found, data)

    def _about(self, message: RawMessage) -> HttpRequest | None:
        """The open request that a message of the server belongs to: the newest, where nothing says which. So
        it reaches the host before the answer."""
        named = None
        if SUBSCRIPTION.encode() in bytes(message.params):
            named = meta_of(message.params).get(SUBSCRIPTION, NOTHING)
        elif message.method == PROGRESS:
            named = parts(message.params).get(TOKEN, NOTHING)
        if named is not None:
            number = key(named)
            return self._open.get(number) if isinstance(number, int) else None
        open = [one for one in self._open.values() if not one.reply.is_closed and one.method != LISTEN]
        return open[-1] if open else None

    def _put(self, reply: HttpReply, message: bytes, *, is_answer: bool = False) -> None:
        reply.put(message, is_answer=is_answer)
        self._unread += len(message)
        if self._unread > HIGH_WATER:
            self.session.pause(True)

    def _taken(self, size: int) -> None:
        was_paused = self._unread > HIGH_WATER
        self._unread -= size
        if was_paused and self._unread <= HIGH_WATER:
            self.session.pause(False)

    def _challenged(self, id: Raw, challenge: LoginChallenge) -> None:
        number = key(id)
        found = self._open.pop(number, None) if isinstance(number, int) else None
        if found is not None:
            self.has_failed = True
            found.reply.challenge(challenge)

    # -- the end

    def wait(self) -> None:
        """Nothing says that a host over HTTP has left, but that it asks for nothing."""
        self.stop_waiting()
        if not self._replies:
            self._timer = asyncio.get_running_loop().call_later(IDLE, self.leave)

    def stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def leave(self) -> None:
        """The host has left: calls that run become tasks."""
        self.end_replies()
        self.session.on_host_gone()
        self._ended()

    def end_replies(self) -> None:
        self.stop_waiting()
        for reply in self._replies:
            reply.end()
