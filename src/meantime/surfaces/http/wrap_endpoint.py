"""/mcp/wrap/NAME: a configured MCP server behind a wrap, on this server and behind the same gate.

A server is named, never described: no request can start a command of its own choosing."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from meantime.kernel.errors import InvalidInput
from meantime.kernel.ids import check_id
from meantime.ports.clock import Clock

from .gate import BY_PATH, CALLER
from .http_settings import HttpSettings
from .mcp_endpoint import check_mcp
from .request_body import read
from .responses import Refusal

PATH = "/mcp/wrap/{name}"
NEVER = -1.0
LONGEST = 86_400.0  # seconds of a threshold


class WrapRequest(NamedTuple):
    name: str
    caller: str  # the thread that its token is bound to; empty for a person's
    thread: str  # the conversation; empty where nobody has said which
    threshold: float | None  # seconds, in place of the configured one
    authorization: str  # for the server: ours was in the path. Never stored.
    body: bytes

    def __repr__(self) -> str:
        return f"WrapRequest({self.name!r}, {self.thread!r})"  # never the values


class WrapHosts(Protocol):
    async def handle(self, asked: WrapRequest, scope: Scope, receive: Receive, send: Send) -> None: ...

    def close(self) -> None:
        """Ends all streams."""
        ...


class WrapEndpoint:
    """`hosts` is None where nobody serves wraps: the daemon does."""

    def __init__(self, hosts: WrapHosts | None, settings: HttpSettings, clock: Clock) -> None:
        self._hosts = hosts
        self._settings = settings
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        check_mcp(scope)
        if self._hosts is None:
            text = "Wrapped servers are served by Meantime's daemon only."
            raise Refusal(404, "no_wraps", text, "Start it with `meantime up`.")
        request = Request(scope, receive)
        body = await read(request, self._settings, self._clock) if scope["method"] == "POST" else b""
        caller = scope[CALLER].thread
        thread = caller or request.query_params.get("thread") or ""
        asked = WrapRequest(
            name=scope["path_params"]["name"],
            caller=caller or "",
            thread=check_id(thread, "thread") if thread else "",
            threshold=_threshold(request.query_params.get("threshold")),
            authorization=Headers(scope=scope).get("authorization", "") if scope[BY_PATH] else "",
            body=body,
        )
        await self._hosts.handle(asked, scope, receive, send)

    def close(self) -> None:
        if self._hosts is not None:
            self._hosts.close()


def _threshold(given: str | None) -> float | None:
    try:
        found = None if given is None else float(given)
    except ValueError:
        found = math.nan
    if found is not None and not (0 <= found <= LONGEST or found == NEVER):  # not a number is neither
        raise InvalidInput(
            f"threshold={given!r} is not a number of seconds.", hint="-1 is never; a day is the most."
        )
    return found
