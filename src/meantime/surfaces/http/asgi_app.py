"""The ASGI app: the routes of the table, behind the gate."""

from __future__ import annotations

import logging

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from meantime.kernel.errors import MeantimeError
from meantime.ports.clock import Clock
from meantime.ports.owner import Owner
from meantime.ports.tasks import Tasks
from meantime.surfaces.dashboard.assets import installed

from .client_limits import Patience
from .dashboard_page import PATHS, DashboardPage
from .dependencies import Dependencies
from .event_feed import Feed, StreamCount
from .gate import RequestGate
from .hook_notices import HookNotices
from .http_settings import HttpSettings
from .long_polls import Polls
from .mcp_endpoint import McpEndpoint
from .patch_feed import PatchFeed
from .protocol_endpoint import MODULES, ProtocolEndpoint
from .responses import Refusal, error_response
from .routes import OPEN_PATHS, ROUTES
from .routing import Endpoint, by_path
from .task_routes import BULK
from .tokens import Tokens
from .wrap_endpoint import PATH as WRAP
from .wrap_endpoint import WrapEndpoint, WrapHosts

LOG = logging.getLogger("meantime.http")


class HttpApp:
    """The result of `make_app`: call it as ASGI, close it to end its streams and its waiting requests."""

    def __init__(
        self,
        tasks: Tasks,
        owner: Owner,
        settings: HttpSettings,
        clock: Clock,
        tokens: Tokens,
        wraps: WrapHosts | None = None,
    ) -> None:
        streams = StreamCount(settings.clients)
        self.feed = Feed(tasks, settings, clock, streams)
        self.patches = PatchFeed(tasks, settings, clock, streams)
        self.polls = Polls(clock, settings.waiting)
        hooks = HookNotices(tasks, owner, settings, self.polls)
        self.mcp = McpEndpoint(tasks, owner, settings, clock)
        shared = Dependencies(
            tasks, owner, settings, clock, self.feed, self.patches, self.polls, hooks, tokens, self.mcp.hosts
        )
        self.routes = {path: Endpoint(found, shared) for path, found in by_path(ROUTES).items()}
        self._tokens = tokens
        # A task may be called "bulk": that path takes its own method alone, and comes before the other.
        routes = [Route(BULK, self.routes[BULK], methods=["POST"])]
        routes += [Route(path, endpoint) for path, endpoint in self.routes.items() if path != BULK]
        routes.append(Route("/mcp", self.mcp))
        self._wraps = WrapEndpoint(wraps, settings, clock)
        routes.append(Route(WRAP, self._wraps))
        self.protocols = {address: ProtocolEndpoint(address, shared) for address in MODULES}
        routes += [Route(address + "/{path:path}", one) for address, one in self.protocols.items()]
        page = DashboardPage(installed())
        routes += [Route(path, page) for path in PATHS]
        inside = _answering(Router(routes, redirect_slashes=False))
        gate = RequestGate(inside, settings, tokens, OPEN_PATHS)
        self._app: ASGIApp = Patience(gate, clock, settings.stall_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    def restore(self) -> None:
        """Continues with what a former server has left to do."""
        for protocol in self.protocols.values():
            protocol.restore()

    async def close(self) -> None:
        self.polls.close()
        self._wraps.close()
        await self.mcp.close()
        for protocol in self.protocols.values():
            await protocol.close()
        await self.feed.close()
        await self.patches.close()
        await self._tokens.issued.close()


def _answering(app: ASGIApp) -> ASGIApp:
    """Every internal error is an answer in JSON."""

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
            await error_response(_translated(error))(scope, receive, send)

    return answering


def _translated(error: Exception) -> MeantimeError:
    if isinstance(error, MeantimeError):
        return error
    if isinstance(error, HTTPException):
        return Refusal(error.status_code, "not_found", "There is nothing here.", "See /v1/openapi.json.")
    LOG.error("A request failed.", exc_info=error)
    return Refusal(500, "internal", "The request failed; the log of this process says why.")
