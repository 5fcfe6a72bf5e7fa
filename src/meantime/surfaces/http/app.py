"""The ASGI app: all routes, family by family, behind the gate."""

from __future__ import annotations

import logging

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from meantime.kernel.errors import MeantimeError
from meantime.ports.clock import Clock
from meantime.ports.owner import Owner
from meantime.ports.tasks import Tasks

from . import answers
from .answers import Refusal
from .endpoint import Endpoint, Table, by_path, thread_of
from .feed import Feed
from .gate import Gate
from .guard import Patience
from .hooks import Hooks
from .info import Info
from .mcp import McpEndpoint
from .output import Outputs
from .parts import Beside, Parts
from .polls import Polls
from .reading import Reading
from .settings import HttpSettings
from .starting import Starting
from .stopping import Stopping
from .stream import Stream, wanted
from .tokens import Tokens
from .turns import Turns
from .waiting import Waiting

LOG = logging.getLogger("meantime.http")


class HttpApp:
    """What `make_app` makes: call it as ASGI, close it to end its streams and whoever waits."""

    def __init__(
        self, tasks: Tasks, owner: Owner, settings: HttpSettings, clock: Clock, tokens: Tokens
    ) -> None:
        self.feed = Feed(tasks, settings, clock)
        self.polls = Polls(clock, settings.waiting)
        parts = Parts(tasks, owner, settings, clock, self.feed, self.polls, Beside())
        self.routes = table(parts)
        self.mcp = McpEndpoint(parts)
        routes = [Route(path, endpoint) for path, endpoint in self.routes.items()]
        routes.append(Route("/mcp", self.mcp))
        inside = _answering(Router(routes, redirect_slashes=False))
        self._app: ASGIApp = Patience(Gate(inside, settings, tokens), clock, settings.stall_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def close(self) -> None:
        self.polls.close()
        await self.mcp.close()
        await self.feed.close()


def make_app(tasks: Tasks, owner: Owner, settings: HttpSettings, clock: Clock, tokens: Tokens) -> HttpApp:
    return HttpApp(tasks, owner, settings, clock, tokens)


def table(parts: Parts) -> dict[str, Endpoint]:
    """Every path, and what each method does there."""
    families = (Reading, Outputs, Waiting, Starting, Stopping, Turns, Hooks, Events, Info)
    return by_path(*(family(parts).table() for family in families))


class Events:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def table(self) -> Table:
        return {"GET /v1/events": self.events}

    async def events(self, request: Request) -> Response:
        tasks, feed, last = self._parts.tasks, self._parts.feed, request.headers.get("last-event-id", "")
        about = await wanted(tasks, request.query_params, last, thread_of(request))
        await feed.join()
        return _Streaming(Stream(tasks, feed, self._parts.clock, self._parts.settings, about))


class _Streaming(Response):
    """Hands the connection to a stream."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._stream(scope, receive, send)


def _answering(app: ASGIApp) -> ASGIApp:
    """Whatever goes wrong inside is an answer in JSON."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noting(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await app({**scope, "app": app}, receive, noting)
        except ClientDisconnect:
            return  # it went away in the middle of its body: nobody is there to be answered
        except Exception as error:
            if begun:  # half an answer cannot be taken back: the connection is closed instead
                LOG.exception("An answer broke off.")
                return
            await answers.problem(_translated(error))(scope, receive, send)

    return answering


def _translated(error: Exception) -> MeantimeError:
    if isinstance(error, MeantimeError):
        return error
    if isinstance(error, HTTPException):
        return Refusal(error.status_code, "not_found", "There is nothing here.", "See /v1/openapi.json.")
    LOG.error("A request failed.", exc_info=error)
    return Refusal(500, "internal", "The request failed; the log of this process says why.")
