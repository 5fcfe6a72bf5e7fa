"""The wire to a server over HTTP. The SDK speaks; here its HTTP requests are kept from hurting each other:
what goes wrong with one, from a refused connection to a status, is that request's own error."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
from mcp.client.streamable_http import streamable_http_client

from meantime.integrations.mcp.servers import HttpServer
from meantime.integrations.mcp.tool_results import STATUS, UNREACHED

from .tls_context import tls_context

MOST_BYTES = 32 << 20  # of one message
SESSION = "mcp-session-id"
SHOWN = 300  # bytes of a body that came with an error status
CUT_OFF = -32072
FORGOTTEN = -32073
TIMEOUTS = httpx2.Timeout(30.0, read=None)  # a tool takes as long as it takes; the task has its own clock


@asynccontextmanager
async def http_wire(server: HttpServer) -> AsyncGenerator[Any]:
    """Both streams, as the SDK wants them."""
    inner = httpx2.AsyncHTTPTransport(verify=tls_context())
    async with (
        httpx2.AsyncClient(headers=server.headers, timeout=TIMEOUTS, transport=Contained(inner)) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MOST_BYTES) as streams,
    ):
        yield streams


class Contained(httpx2.AsyncBaseTransport):
    """An answer for every request. Requests that came to nothing are answered with a JSON-RPC error, which
    the SDK gives to their caller.
    """

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._inner.handle_async_request(request)
        except httpx2.ConnectError as problem:
            return _error(request, UNREACHED, f"It cannot be reached: {_words(problem)}")
        except httpx2.TransportError as problem:
            return _error(request, CUT_OFF, f"The connection was cut off: {_words(problem)}")
        kind = response.headers.get("content-type", "").lower()
        if response.status_code < 400 and not kind.startswith("application/json"):
            return response
        try:
            body = await _body(response)
        except httpx2.TransportError as problem:
            return _error(request, CUT_OFF, f"The connection was cut off: {_words(problem)}")
        finally:
            await response.aclose()
        if body is None:
            return _error(request, STATUS, f"Its answer has more than {MOST_BYTES >> 20} MB.")
        if response.status_code == 404 and SESSION in request.headers:
            return _error(request, FORGOTTEN, "The server does not know our session any more.")
        if response.status_code >= 400 and not _is_error(body):
            shown = body[:SHOWN].decode("utf-8", "replace").strip()
            said = f"It answered with HTTP {response.status_code} {response.reason_phrase}. {shown}".strip()
            return _error(request, STATUS, said, response.status_code)
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_BODY]
        return httpx2.Response(response.status_code, headers=headers, content=body)

    async def aclose(self) -> None:
        await self._inner.aclose()


_OF_BODY = ("content-length", "content-encoding", "transfer-encoding")


async def _body(response: httpx2.Response) -> bytes | None:
    """None where it is too big."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > MOST_BYTES:
            return None
        pieces.append(piece)
    return b"".join(pieces)


def _is_error(body: bytes) -> bool:
    try:
        found = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.MsgspecError:
        return False
    return isinstance(found.get("error"), dict) and found.get("jsonrpc") == "2.0"


def _error(request: httpx2.Request, code: int, message: str, status: int = 502) -> httpx2.Response:
    if request.method != "POST":
        return httpx2.Response(status)
    try:
        id = msgspec.json.decode(request.content, type=dict[str, Any]).get("id")
    except (msgspec.MsgspecError, httpx2.StreamError):
        id = None
    error = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}
    return httpx2.Response(status, json=error)


def _words(problem: Exception) -> str:
    return str(problem) or type(problem).__name__
