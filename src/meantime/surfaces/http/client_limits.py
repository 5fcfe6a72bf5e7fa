"""Slow and greedy clients. uvicorn waits for a request head for ever, holds as much of it as comes, and
keeps the descriptor of a client that takes nothing of its answer: here all three have an end."""

from __future__ import annotations

import asyncio
import socket
import types
from collections.abc import Callable, Coroutine, Generator
from functools import cached_property
from typing import Any, cast

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from meantime.ports.clock import Alarm, Clock

from .http_settings import HttpSettings
from .peers import peer_uid
from .responses import Refusal, error_body

CONNECTION = "meantime.connection"
TARGET = "meantime.target"  # of the request, as it came
MOST_REST = 64 << 20  # bytes of a refused body that are read all the same
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def _full(most: int) -> bytes:
    text, hint = f"{most} connections are open already.", "Close some, or raise [http] connections."
    body = error_body(Refusal(503, "too_many_connections", text, hint))
    head = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n"
    return f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


class HttpConnection:
    """One client's connection, as the app may know it."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    @cached_property
    def is_unix(self) -> bool:
        connected = self._transport.get_extra_info("socket")
        return connected is not None and connected.family == socket.AF_UNIX

    @cached_property
    def uid(self) -> int | None:
        return peer_uid(self._transport)

    def abort(self) -> None:
        """Closing would wait until the client has read what was written: that may be never."""
        self._transport.abort()


def connection_of(scope: Scope) -> HttpConnection | None:
    return scope.get("state", {}).get(CONNECTION)


class Patience:
    """Lets go of a client that takes nothing of its answer for too long."""

    def __init__(self, app: ASGIApp, clock: Clock, seconds: float) -> None:
        self._app = app
        self._clock = clock
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        if connection is None:
            await self._app(scope, receive, send)
            return

        async def patient(message: Message) -> None:
            sending = cast("Coroutine[Any, Any, None]", send(message))  # every server's is one
            await _watched(sending, lambda: self._clock.call_later(self._seconds, connection.abort))

        await self._app(scope, receive, patient)


@types.coroutine
def _watched(sending: Coroutine[Any, Any, None], arm: Callable[[], Alarm]) -> Generator[Any, Any, None]:
    """Awaits it. The alarm is set only if it has to wait: most sends do not, and a page has many."""
    try:
        waits_for = sending.send(None)
    except StopIteration:
        return
    alarm = arm()
    try:
        while True:
            try:
                result = yield waits_for
            except GeneratorExit:
                sending.close()
                raise
            except BaseException as problem:
                waits_for = sending.throw(problem)
            else:
                waits_for = sending.send(result)
    except StopIteration:
        return
    finally:
        alarm.cancel()


class RequestHead:
    """The head of the request that a connection is about to send: it has a size and a time."""

    def __init__(self, transport: Any, settings: HttpSettings, clock: Clock) -> None:
        self._transport = transport
        self._settings = settings
        self._clock = clock
        self._bytes = 0
        self._alarm: Alarm | None = None

    def expect(self, more: int = 0) -> None:
        self._bytes += more
        if self._alarm is None:
            self._alarm = self._clock.call_later(self._settings.header_seconds, self._transport.abort)

    def came(self) -> None:
        self._bytes = 0
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def check(self, most: int) -> None:
        if self._bytes > most:
            self._transport.write(_TOO_LARGE)
            self._transport.abort()


def guarded_protocol(settings: HttpSettings, clock: Clock) -> type[asyncio.Protocol]:
    """uvicorn's protocol, whichever it has, with our limits."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    protocol: Any = AutoHTTPProtocol  # its two kinds have no common type

    def is_busy(self: Any) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def has_rest(self: Any) -> bool:
        """Whether there is more of a body that was refused: it is read and dropped, for to break off would
        take the answer away from a client that sends everything before it reads.
        """
        return self.cycle is not None and self.cycle.response_complete and self.cycle.more_body

    def connection_made(self: Any, transport: Any) -> None:
        self.app_state = {**self.app_state, CONNECTION: HttpConnection(transport)}
        self.head = RequestHead(transport, settings, clock)
        protocol.connection_made(self, transport)
        if len(self.connections) > settings.connections:
            transport.write(_full(settings.connections))
            transport.abort()
        else:
            self.head.expect()

    def data_received(self: Any, data: bytes) -> None:
        if not is_busy(self):
            self.head.expect(len(data))
        protocol.data_received(self, data)
        if is_busy(self) or self.transport.is_closing():
            self.head.came()
        else:
            self.head.check(MOST_REST if has_rest(self) else settings.header_bytes)

    def on_response_complete(self: Any) -> None:
        self.head.came()
        protocol.on_response_complete(self)

    def connection_lost(self: Any, problem: Exception | None) -> None:
        self.head.came()
        protocol.connection_lost(self, problem)

    def timeout_keep_alive_handler(self: Any) -> None:
        protocol.timeout_keep_alive_handler(self)
        clock.call_later(settings.stall_seconds, self.transport.abort)

    def on_url(self: Any, url: bytes) -> None:
        """httptools takes the host out of a target such as `http://name/v1/tasks`; the gate looks at it."""
        protocol.on_url(self, url)
        self.scope[TARGET] = self.url

    ours: list[Any] = [
        connection_made,
        data_received,
        on_response_complete,
        connection_lost,
        timeout_keep_alive_handler,
    ]
    if hasattr(protocol, "on_url"):  # h11 leaves the target as it is, in the path
        ours.append(on_url)
    return type("Guarded", (protocol,), {method.__name__: method for method in ours})
