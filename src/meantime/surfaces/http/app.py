"""The ASGI app: seed 001's routes behind the gate."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from meantime.kernel.errors import MeantimeError, NotFound
from meantime.ports.clock import Clock
from meantime.ports.store import Query
from meantime.ports.tasks import Tasks

from . import answers, asking
from .answers import Refusal
from .feed import Feed
from .gate import CALLER, Gate
from .guard import Patience
from .logs import history
from .settings import HttpSettings
from .stream import Stream, wanted
from .summary import wire_group, wire_stats
from .sweep import sweep
from .tokens import Caller, Tokens
from .wire import wire_task

LOG = logging.getLogger("meantime.http")
Endpoint = Callable[[Request], Awaitable[Response]]


class HttpApp:
    """What `make_app` makes: call it as ASGI, close it to end its streams."""

    def __init__(self, tasks: Tasks, settings: HttpSettings, clock: Clock, tokens: Tokens) -> None:
        self.feed = Feed(tasks, settings, clock)
        routes = Routes(tasks, settings, clock, self.feed)
        inside = _answering(Router(routes.table(), redirect_slashes=False))
        self._app: ASGIApp = Patience(Gate(inside, settings, tokens), clock, settings.stall_seconds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def close(self) -> None:
        await self.feed.close()


def make_app(tasks: Tasks, settings: HttpSettings, clock: Clock, tokens: Tokens) -> HttpApp:
    return HttpApp(tasks, settings, clock, tokens)


class Routes:
    """One method an endpoint. A caller that is bound to a thread sees that thread and no other."""

    def __init__(self, tasks: Tasks, settings: HttpSettings, clock: Clock, feed: Feed) -> None:
        self._tasks = tasks
        self._settings = settings
        self._clock = clock
        self._feed = feed
        self._began = clock.monotonic()
        self._openapi = files(__package__ or "").joinpath("openapi.json").read_bytes()

    def table(self) -> list[Route]:
        endpoints: dict[str, Endpoint] = {
            "/v1/tasks": self.list,
            "/v1/tasks/{id}": self.detail,
            "/v1/tasks/{id}/logs": self.logs,
            "/v1/task-groups/{id}": self.group,
            "/v1/events": self.events,
            "/v1/health": self.health,
            "/v1/stats": self.stats,
            "/v1/openapi.json": self.openapi,
        }
        return [Route(path, endpoint, methods=["GET", "HEAD"]) for path, endpoint in endpoints.items()]

    async def list(self, request: Request) -> Response:
        query = asking.listing(request.query_params, _thread(request))
        page = await self._tasks.page(query)
        return answers.json(
            {
                "tasks": [wire_task(task) for task in page.tasks],
                "total": page.total,
                "limit": query.limit,
                "offset": query.offset,
            }
        )

    async def detail(self, request: Request) -> Response:
        task = await asking.find(self._tasks, request.path_params["id"], _thread(request))
        return answers.json(wire_task(task, whole=True))

    async def logs(self, request: Request) -> Response:
        task = await asking.find(self._tasks, request.path_params["id"], _thread(request))
        return answers.json(await history(self._tasks, task, request.query_params))

    async def group(self, request: Request) -> Response:
        id = request.path_params["id"]
        query = Query(_thread(request), batch=id, hidden=True)
        members = [task async for page in sweep(self._tasks, query) for task in page]
        if not members:
            raise NotFound(f"No task group {id[:128]!r}.", hint="List /v1/tasks to see each task's batchId.")
        numbers = wire_group(id, members, self._clock.now())
        return answers.json({**numbers, "tasks": [wire_task(task) for task in members]})

    async def events(self, request: Request) -> Response:
        last = request.headers.get("last-event-id", "")
        about = await wanted(self._tasks, request.query_params, last, _thread(request))
        await self._feed.join()
        return _Streaming(Stream(self._tasks, self._feed, self._clock, self._settings, about))

    async def health(self, request: Request) -> Response:
        everything = await self._tasks.page(Query(hidden=True, limit=1))  # open to all, so it must be cheap
        return answers.json(
            {
                "status": "ok",
                "uptime": round(self._clock.monotonic() - self._began, 3),
                "version": self._settings.version,
                "taskCount": everything.total,
            }
        )

    async def stats(self, request: Request) -> Response:
        thread = _thread(request)
        counts = await self._tasks.stats() if thread is None else {}
        return answers.json(wire_stats(await self._tasks.statistics(thread), counts))

    async def openapi(self, request: Request) -> Response:
        return Response(self._openapi, media_type="application/json")


class _Streaming(Response):
    """Hands the connection to a stream."""

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._stream(scope, receive, send)


def _thread(request: Request) -> str | None:
    caller: Caller = request.scope[CALLER]
    return caller.thread


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
        except Exception as error:
            if begun:  # half an answer cannot be taken back: the connection is closed instead
                LOG.exception("An answer broke off.")
                return
            await answers.problem(_translated(error))(scope, receive, send)

    return answering


def _translated(error: Exception) -> MeantimeError:
    if isinstance(error, MeantimeError):
        return error
    if isinstance(error, HTTPException) and error.status_code == 405:
        return Refusal(405, "read_only", "This door only reads.", "Use GET.")
    if isinstance(error, HTTPException):
        return Refusal(error.status_code, "not_found", "There is nothing here.", "See /v1/openapi.json.")
    LOG.error("A request failed.", exc_info=error)
    return Refusal(500, "internal", "The request failed; the log of this process says why.")
