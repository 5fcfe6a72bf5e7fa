"""A route as data, and how a request is dispatched to it.

`Route` declares everything about an operation: who may use it, what its query string and its body hold, and
what it answers. The dispatch below, /v1/openapi.json and the tables of docs/reference/http.md all follow it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .dependencies import Dependencies
from .gate import CALLER, WRITING
from .query_params import check_names, decoded
from .request_body import body_of
from .responses import Refusal, json_response
from .schemas import Body, Params
from .task_lookup import own_thread
from .tokens import Caller

P = TypeVar("P", bound=Params | None)
B = TypeVar("B", bound=Body | None)
A = TypeVar("A")


class Access(Enum):
    """The gate's requirements for a caller. `*_ALL` is not for the token of a thread."""

    OPEN = "open"  # nothing but the Host
    READ = "read"
    READ_ALL = "read all"
    WRITE = "write"
    WRITE_ALL = "write all"

    @property
    def writes(self) -> bool:
        return self in (Access.WRITE, Access.WRITE_ALL)

    @property
    def all_threads(self) -> bool:
        return self in (Access.READ_ALL, Access.WRITE_ALL)


class Subject(NamedTuple):
    """The value that the path names, under the name of its parameter."""

    name: str
    description: str


TASK = Subject("id", "A task's id, its session's, or a unique prefix of the former.")
THREAD = Subject("id", "A thread.")
BATCH = Subject("id", "A batchId.")
TURN = Subject("turn", "A turn, as it was opened.")
SERVER = Subject("name", "The server, as it is configured.")


class RequestContext(NamedTuple, Generic[P, B]):
    """One request, checked."""

    request: Request
    thread: str | None  # all that the caller may see; None is everything
    subject: str  # as the path names it
    params: P
    body: B


class Route(Struct, Generic[P, B, A], frozen=True, kw_only=True):
    """One operation. A handler gives the answer, None for 204, or a whole response."""

    method: Literal["GET", "POST"]
    path: str
    operation: str  # its name in the description
    summary: str
    note: str = ""  # more than the summary says
    gives: str  # what the answer is
    handler: Callable[[Dependencies, RequestContext[P, B]], Awaitable[A | Response | None]]
    access: Access = Access.READ
    seed: bool = False  # seed 001 asks for it; everything else is ours
    subject: Subject | None = None
    params: type[P] | None = None
    headers: tuple[str, ...] = ()  # of the request, beyond those of every request
    body: type[B] | None = None
    answer: type[A] | None = None
    status: int = 200
    location: str = ""  # of what was created, from its id
    empty: str = ""  # what 204 means
    media: tuple[str, ...] = ()  # content types beside JSON
    errors: tuple[int, ...] = ()  # beyond those that its access, subject and body bring along


AnyRoute: TypeAlias = Route[Any, Any, Any]


class Endpoint:
    """One path, as ASGI. HEAD is a GET whose body the server leaves out."""

    def __init__(self, routes: Iterable[AnyRoute], dependencies: Dependencies) -> None:
        self.handlers = {route.method: route for route in routes}
        self._dependencies = dependencies
        self._absent = {route.method: route.params and route.params() for route in self.handlers.values()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        route = self.handlers.get(method)
        if route is None:
            raise self._wrong_method()
        request = Request(scope, receive, send)
        asked = await self._checked(route, request)
        answer = await route.handler(self._dependencies, asked)
        await _response(route, answer)(scope, receive, send)

    async def _checked(self, route: AnyRoute, request: Request) -> RequestContext[Any, Any]:
        """In this order: what is refused first hides what would be refused later."""
        scope = request.scope
        if route.access.writes:
            scope[WRITING]()
        given: Mapping[str, str] = request.query_params if scope["query_string"] else {}
        if given:
            check_names(given, () if route.params is None else route.params.__struct_encode_fields__)
        caller: Caller = scope[CALLER]
        if route.access.all_threads and caller.thread is not None:
            text = "This is not for the token of a thread."
            raise Refusal(403, "person_only", text, "Use the server's own token, or its unix socket.")
        subject = "" if route.subject is None else request.path_params[route.subject.name]
        if route.subject is THREAD:
            subject = own_thread(subject, caller.thread)
        params = decoded(given, route.params) if given and route.params else self._absent[route.method]
        body = None
        if route.body is not None:
            settings, clock = self._dependencies.settings, self._dependencies.clock
            body = await body_of(request, route.body, settings, clock)
        return RequestContext(request, caller.thread, subject, params, body)

    def _wrong_method(self) -> Refusal:
        allow = ["GET", "HEAD"] if "GET" in self.handlers else []
        allow += ["POST"] if "POST" in self.handlers else []
        code, text = ("wrong_method", "This path knows no such method.")
        if "POST" not in self.handlers:
            code, text = ("read_only", "This path only reads.")
        hint = f"Use {' or '.join(self.handlers)}."
        return Refusal(405, code, text, hint, {"Allow": ", ".join([*allow, "OPTIONS"])})


def _response(route: AnyRoute, answer: Any) -> Response:
    if isinstance(answer, Response):
        return answer
    if answer is None:
        return Response(status_code=204)
    headers = {"Location": route.location.format(id=answer.id)} if route.location else None
    return json_response(answer, route.status, headers)


def by_path(routes: Iterable[AnyRoute]) -> dict[str, list[AnyRoute]]:
    """The paths, in the order in which they are named first."""
    found: dict[str, list[AnyRoute]] = {}
    for route in routes:
        found.setdefault(route.path, []).append(route)
    return found
