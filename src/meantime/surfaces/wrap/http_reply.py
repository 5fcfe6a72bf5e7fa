"""The answer to one HTTP request of a host: JSON if the answer of the server is the first thing to say,
otherwise a stream of events, which also has what the server says before."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec
from starlette.types import Receive, Send

from meantime.kernel.errors import Closed
from meantime.ports.wrapped_server import LoginChallenge

EAGER = 5.0  # seconds without a message, after which a stream is begun
PING = 15.0  # seconds of silence on a stream
MOST_UNSENT, MOST_UNSENT_BYTES = 1_000, 4 << 20
JSON, EVENTS = b"application/json", b"text/event-stream"
Headers = list[tuple[bytes, bytes]]


class UnsentMessages:
    """Messages of a server while its host has no request open. The oldest are dropped."""

    def __init__(self) -> None:
        self._messages: deque[bytes] = deque()
        self._bytes = 0

    def add(self, message: bytes) -> None:
        self._messages.append(message)
        self._bytes += len(message)
        while len(self._messages) > MOST_UNSENT or self._bytes > MOST_UNSENT_BYTES:
            self._bytes -= len(self._messages.popleft())

    def take(self) -> list[bytes]:
        found = list(self._messages)
        self._messages.clear()
        self._bytes = 0
        return found


class HttpReply:
    """`open` is the number of requests that it answers; None is a stream for what the server says by itself.
    `taken` is told how many bytes have left."""

    def __init__(self, open: int | None, taken: Callable[[int], None]) -> None:
        self._open = open
        self._taken = taken
        self._messages: deque[bytes] = deque()
        self._untaken = 0  # bytes that came and have not left
        self._more = asyncio.Event()
        self._has_answer = False  # first
        self._is_over = False  # nothing comes any more
        self._challenge: LoginChallenge | None = None
        self.is_closed = False  # nobody reads any more

    def put(self, message: bytes, *, is_answer: bool) -> None:
        if is_answer and self._open is not None:
            self._has_answer = self._has_answer or (self._open == 1 and not self._messages)
            self._open -= 1
        self._messages.append(message)
        self._untaken += len(message)
        self._more.set()

    def challenge(self, challenge: LoginChallenge) -> None:
        self._challenge = challenge
        self._more.set()

    def end(self) -> None:
        """Without an answer."""
        self._is_over = True
        self._more.set()

    async def serve(self, headers: Headers, receive: Receive, send: Send) -> None:
        watching = asyncio.ensure_future(self._watch(receive))
        try:
            first = await self._next(EAGER) if self._open is not None else b""
            if self._challenge is not None:
                challenge = self._challenge
                named = (
                    [(b"www-authenticate", challenge.header.encode("latin-1", "replace"))]
                    if challenge.header
                    else []
                )
                await _whole(send, challenge.status, [*headers, *named], challenge.body)
            elif self._has_answer and first is not None:
                await _whole(send, 200, headers, first)
            elif first is None and not self.is_closed:
                raise Closed
            elif not self.is_closed:
                await self._stream(first or b"", headers, send)
        finally:
            self.is_closed = True
            watching.cancel()
            self._leave(self._untaken)

    def _leave(self, size: int) -> None:
        self._untaken -= size
        self._taken(size)

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.is_closed = True
        self._more.set()

    async def _stream(self, first: bytes, headers: Headers, send: Send) -> None:
        begun = [*headers, (b"content-type", EVENTS)]
        await send({"type": "http.response.start", "status": 200, "headers": begun})
        message: bytes | None = first
        while message is not None:
            await send({"type": "http.response.body", "body": _event(message), "more_body": True})
            self._leave(len(message))
            message = await self._next(PING)
        await send({"type": "http.response.body", "body": b""})

    async def _next(self, seconds: float) -> bytes | None:
        """Empty: nothing came for that long. None: nothing comes any more."""
        while not self._messages:
            if self.is_closed or self._is_over or self._challenge is not None or self._open == 0:
                return None
            self._more.clear()
            try:
                async with asyncio.timeout(seconds):
                    await self._more.wait()
            except TimeoutError:
                return b""
        return self._messages.popleft()


def _event(message: bytes) -> bytes:
    if not message:
        return b": still here\n\n"
    if b"\n" in message or b"\r" in message:  # a server over HTTP may write JSON over several lines
        message = bytes(msgspec.json.format(message, indent=0))
    return b"event: message\ndata: " + message + b"\n\n"


async def _whole(send: Send, status: int, headers: Headers, body: bytes) -> None:
    named = [*headers, (b"content-type", JSON), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": named})
    await send({"type": "http.response.body", "body": body})
