"""/mcp: the MCP server on this one, behind the same gate. The SDK is loaded with the first request for it."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from typing import Any, Protocol

from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from meantime.kernel.errors import Closed
from meantime.ports.clock import Clock
from meantime.ports.owner import HostCount, Owner
from meantime.ports.tasks import Tasks

from .gate import CALLER, WRITING
from .http_settings import HttpSettings
from .request_body import read
from .responses import Refusal
from .tokens import Caller

METHODS = ("POST", "GET", "DELETE")
MODULE = "meantime.surfaces.mcp.streamable_http"


class Served(Protocol):
    async def handle(self, caller: Caller, scope: Scope, receive: Receive, send: Send) -> None: ...

    def hosts(self) -> Sequence[HostCount]: ...

    async def close(self) -> None: ...


def check_mcp(scope: Scope) -> None:
    """A client of MCP can start commands: everything passes the gate's rules for writing."""
    if scope["method"] not in METHODS:
        allow = {"Allow": ", ".join([*METHODS, "OPTIONS"])}
        raise Refusal(405, "wrong_method", "This path knows no such method.", "", allow)
    if scope[CALLER].question is not None:
        raise Refusal(403, "question_token", "This token answers one question.", "Use a token of a thread.")
    scope[WRITING](json=scope["method"] == "POST")


class McpEndpoint:
    def __init__(self, tasks: Tasks, owner: Owner, settings: HttpSettings, clock: Clock) -> None:
        self._tasks = tasks
        self._owner = owner
        self._settings = settings
        self._clock = clock
        self._served: asyncio.Task[Served] | None = None
        self._closing: asyncio.Future[None] | None = None
        self._closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_mcp(scope)
        if scope["method"] == "POST":
            receive = replayed(await read(Request(scope, receive), self._settings, self._clock), receive)
        served = await self._reach()
        await self._until_closed(served.handle(scope[CALLER], scope, receive, send))

    def hosts(self) -> Sequence[HostCount]:
        """The hosts of clients that speak MCP here."""
        served = self._served
        if served is None or not served.done() or served.cancelled() or served.exception() is not None:
            return ()
        return served.result().hosts()

    async def close(self) -> None:
        self._closed = True
        if self._closing is not None and not self._closing.done():
            self._closing.set_result(None)
        if self._served is not None:
            await asyncio.wait([self._served])
            if not self._served.cancelled() and self._served.exception() is None:
                await self._served.result().close()

    async def _reach(self) -> Served:
        if self._closed:
            raise Closed
        if self._served is None:
            self._closing = asyncio.get_running_loop().create_future()
            self._served = asyncio.ensure_future(self._load())
        try:
            return await asyncio.shield(self._served)
        except ImportError as missing:
            self._served = None
            text = f"MCP needs a package that is not installed: {missing.name}."
            hint = "Install it with: pip install 'meantime[mcp]'"
            raise Refusal(501, "extra_missing", text, hint) from None

    async def _load(self) -> Served:
        """It takes a while: the event loop goes on meanwhile."""
        module: Any = await asyncio.to_thread(importlib.import_module, MODULE)
        return await module.open_http_server(self._tasks, self._owner, self._settings)

    async def _until_closed(self, handling: Any) -> None:
        """Streams never end by themselves, and a wait may take long."""
        assert self._closing is not None
        serving = asyncio.ensure_future(handling)
        try:
            await asyncio.wait({serving, self._closing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not serving.done():
                serving.cancel()
                await asyncio.wait({serving})
        if serving.cancelled():
            raise Closed
        serving.result()


def replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read already, and then whatever comes."""
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again
