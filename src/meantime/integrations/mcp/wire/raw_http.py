"""A server over Streamable HTTP behind a wrap: each line is a request of HTTP, and what comes back, as JSON
or as a stream of events, is passed on unread."""

from __future__ import annotations

import asyncio
import base64
from contextlib import suppress
from typing import Any

import httpx2
import msgspec
from msgspec import Raw, Struct

from meantime.integrations.mcp.id_scan import IdScan
from meantime.integrations.mcp.raw_stdio import MOST_BYTES, pass_on
from meantime.integrations.mcp.servers import HttpServer
from meantime.integrations.mcp.sse_events import SseEvents
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.wrapped_server import LoginChallenge, ServerEnd, ServerFull

from .tls_context import tls_context

TIMEOUTS = httpx2.Timeout(30.0, read=None)  # a tool takes as long as it takes
MOST_POSTS = 1_000  # requests of HTTP at once
TRIES = 5  # to take up a stream that was cut
CLOSES = 2.0  # seconds to say that the session is over
SHOWN = 300  # bytes of a body that came with an error status
MOST_CHALLENGE = 65_536  # bytes of one that asks for a login, for a host that can make it
VERSION = "io.modelcontextprotocol/protocolVersion"  # in the _meta of requests that have no handshake
CANCELLED = "notifications/cancelled"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
LOGIN = (
    "It asks for a login: put a token into `headers` of the server in the configuration, or into a file for "
    "`meantime mcp --wrap URL --headers FILE`. "
)
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Outgoing(Struct):
    """As much of a message as its HTTP request must say."""

    id: int | str | None = None
    method: str = ""
    params: Raw = Raw(b"{}")

    def headers(self) -> dict[str, str]:
        """Headers of the protocol without a handshake, which repeats the envelope outside of the body."""
        try:
            params = msgspec.json.decode(self.params, type=dict[str, Raw])
            meta = msgspec.json.decode(params.get("_meta", b"{}"), type=dict[str, Any])
            version = meta.get(VERSION)
            if not isinstance(version, str):
                return {}
            found = {"mcp-protocol-version": version, "mcp-method": self.method}
            if self.method in NAMED:
                found["mcp-name"] = header_text(msgspec.json.decode(params[NAMED[self.method]], type=str))
            return found
        except (msgspec.MsgspecError, KeyError):
            return {}


class Cancelled(Struct):
    requestId: int | str


def header_text(value: str) -> str:
    """As the protocol encodes what a header cannot hold."""
    plain = value.isascii() and value.isprintable() and value == value.strip() and not value.startswith("=?")
    return value if plain else f"=?base64?{base64.b64encode(value.encode()).decode()}?="


class RawHttp:
    def __init__(self, name: str, server: HttpServer, end: ServerEnd) -> None:
        self.name = name
        self.is_open = True
        self._server = server
        self._end = end
        self._client = httpx2.AsyncClient(headers=server.headers, timeout=TIMEOUTS, verify=tls_context())
        self._session: dict[str, str] = {}  # headers that every later request repeats
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._posts = BackgroundTasks()
        self._without_handshake: dict[int | str, asyncio.Task[None]] = {}  # requests of that protocol, by id
        self._queue: asyncio.Queue[tuple[bytes, dict[str, str]]] = asyncio.Queue()
        self._login: dict[str, str] = {}  # the host's, in place of the configured one
        self._sender = self._posts.start(self._send_all())

    def send(self, line: bytes) -> None:
        if self._queue.qsize() + len(self._posts) >= MOST_POSTS:
            raise ServerFull
        self._queue.put_nowait((line, self._login))

    def authorize(self, authorization: str) -> None:
        self._login = {"authorization": authorization} if authorization else {}

    def pause(self, paused: bool) -> None:
        if paused:
            self._flowing.clear()
        else:
            self._flowing.set()

    async def close(self) -> None:
        self.is_open = False
        await self._posts.close()
        if "mcp-session-id" in self._session:
            with suppress(httpx2.HTTPError, TimeoutError):
                async with asyncio.timeout(CLOSES):
                    await self._client.delete(self._server.url, headers={**self._session, **self._login})
        await self._client.aclose()

    async def _send_all(self) -> None:
        """Requests run side by side. A notification or an answer is with the server before the next line."""
        while True:
            line, login = await self._queue.get()
            try:
                message = msgspec.json.decode(line, type=Outgoing)
            except msgspec.MsgspecError:
                continue
            if message.id is not None and message.method and message.method != "initialize":
                self._begin(line, message, message.id, login)
            elif message.method == CANCELLED and self._cut(message):
                continue
            else:
                await self._post(line, message, login)
            if message.method == "notifications/initialized":
                self._posts.start(self._listen())

    def _begin(self, line: bytes, message: Outgoing, id: int | str, login: dict[str, str]) -> None:
        posting = self._posts.start(self._post(line, message, login))
        if message.headers():
            self._without_handshake[id] = posting
            posting.add_done_callback(lambda _: self._without_handshake.pop(id, None))

    def _cut(self, message: Outgoing) -> bool:
        """Without a handshake a request is cancelled by closing its stream: the server has no session in
        which it could look for the id that a notification names."""
        with suppress(msgspec.MsgspecError):
            wanted = msgspec.json.decode(message.params, type=Cancelled).requestId
            posting = self._without_handshake.pop(wanted, None)
            return posting is not None and posting.cancel()
        return False

    async def _post(self, line: bytes, message: Outgoing, login: dict[str, str]) -> None:
        headers = {**ACCEPT, **self._session, **message.headers(), **login}
        id = message.id if message.method else None
        try:
            request = self._client.build_request("POST", self._server.url, content=line, headers=headers)
            response = await self._client.send(request, stream=True)
        except httpx2.ConnectError as problem:
            self._refuse(id, f"{self._address()} cannot be reached: {_words(problem)}")
            return
        except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
            self._cut_off(id, problem)
            return
        try:
            await self._take(response, id, message.method)
        except httpx2.HTTPError as problem:
            self._cut_off(id, problem)
        finally:
            await response.aclose()

    async def _take(self, response: httpx2.Response, id: int | str | None, method: str) -> None:
        if response.headers.get("mcp-session-id"):
            self._session["mcp-session-id"] = response.headers["mcp-session-id"]
        kind = response.headers.get("content-type", "").lower()
        if response.status_code < 400 and kind.startswith("text/event-stream"):
            await self._stream(response, id)
            return
        body = await _body(response)
        if response.status_code == 404 and self._session:
            self._refuse(id, "The server does not know the session any more.")
            self._gone("It does not know the session any more.")
        elif response.status_code >= 400 and not _is_answer(body):
            self._refused(response, body, id)
        elif body and id is not None:
            if method == "initialize":
                self._note_version(body)
            pass_on(body, self._end)

    def _refused(self, response: httpx2.Response, body: bytes, id: int | str | None) -> None:
        status = response.status_code
        shown = bytes(body)[:SHOWN].decode("utf-8", "replace").strip()
        if status in (401, 403):
            why = f"The server answered with HTTP {status}. {LOGIN}{shown}".strip()
            header = response.headers.get("www-authenticate", "")
            self._end.on_challenge(id, LoginChallenge(status, header, bytes(body)[:MOST_CHALLENGE]), why)
        else:
            self._refuse(id, f"The server answered with HTTP {status}. {shown}".strip())

    def _note_version(self, body: bytes) -> None:
        with suppress(msgspec.MsgspecError, KeyError, TypeError):
            version = msgspec.json.decode(body)["result"]["protocolVersion"]
            if isinstance(version, str):
                self._session["mcp-protocol-version"] = version

    async def _stream(self, response: httpx2.Response, id: int | str | None) -> None:
        """Reads until the answer to `id` is there. A stream that was cut is resumed, if it can be."""
        events = SseEvents(MOST_BYTES, IdScan)
        if await self._events(response, events, id):
            return
        for _ in range(TRIES):
            if not events.last_id:
                break
            await asyncio.sleep(events.retry)
            with suppress(httpx2.HTTPError):
                headers = {
                    "accept": "text/event-stream",
                    "last-event-id": events.last_id,
                    **self._session,
                    **self._login,
                }
                async with self._client.stream("GET", self._server.url, headers=headers) as again:
                    if again.status_code >= 400:
                        break
                    if await self._events(again, events, id):
                        return
        self._end.on_unanswered(id, "The stream of its answer was cut off.")

    async def _events(self, response: httpx2.Response, events: SseEvents, id: int | str | None) -> bool:
        """Whether the answer to `id` was among them."""
        with suppress(httpx2.TransportError):
            async for piece in response.aiter_bytes():
                for event in events.feed(piece):
                    scan = event if isinstance(event, IdScan) else IdScan()
                    if scan is not event:
                        scan.feed(event)
                    if "mcp-protocol-version" not in self._session:
                        self._note_version(event)
                    pass_on(event, self._end)
                    if id is not None and scan.answers == id:
                        return True
                await self._flowing.wait()
        return False

    async def _listen(self) -> None:
        """The stream for what the server says by itself. Many servers have none."""
        events = SseEvents(MOST_BYTES, IdScan)
        for _ in range(TRIES):
            headers = {"accept": "text/event-stream", **self._session, **self._login}
            if events.last_id:
                headers["last-event-id"] = events.last_id
            with suppress(httpx2.HTTPError):
                async with self._client.stream("GET", self._server.url, headers=headers) as response:
                    kind = response.headers.get("content-type", "").lower()
                    if response.status_code >= 400 or not kind.startswith("text/event-stream"):
                        return
                    await self._events(response, events, None)
            await asyncio.sleep(events.retry)

    def _refuse(self, id: int | str | None, why: str) -> None:
        """The server has not done what was asked."""
        if id is not None:
            error = {"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": why}}
            self._end.on_line(msgspec.json.encode(error))

    def _address(self) -> str:
        """Host and port: the rest of a URL may have a secret in it."""
        return f"The server at {httpx2.URL(self._server.url).netloc.decode()}"

    def _cut_off(self, id: int | str | None, problem: Exception) -> None:
        self._end.on_unanswered(id, f"The connection was cut off: {_words(problem)}.")

    def _gone(self, why: str) -> None:
        if self.is_open:
            self.is_open = False
            self._end.on_gone(why)
            asyncio.get_running_loop().call_soon(self._posts.cancel)


async def _body(response: httpx2.Response) -> bytes:
    """A LongLine where it is too big."""
    pieces: list[bytes] = []
    size, scan = 0, None
    async for piece in response.aiter_bytes():
        size += len(piece)
        if scan is None and size > MOST_BYTES:
            scan = IdScan()
            for one in pieces:
                scan.feed(one)
            pieces = []
        if scan is not None:
            scan.feed(piece)
        else:
            pieces.append(piece)
    return scan if scan is not None else b"".join(pieces)


def _is_answer(body: bytes) -> bool:
    try:
        found = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError:
        return False
    return "error" in found and found.get("jsonrpc") == "2.0"


def _words(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
