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

from meantime.kernel.errors import NotFound

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
    """The gate's requirements for a caller. `*_ALL` is not for the token of a thread, and `*_OWNER` for no
    token but the server's own: it is about the other tokens.
    """

    OPEN = "open"  # nothing but the Host
    OPEN_WRITE = "open write"  # what every write needs, but for the token
    READ = "read"
    READ_ALL = "read all"
    READ_OWNER = "read owner"
    WRITE = "write"
    WRITE_ALL = "write all"
    WRITE_OWNER = "write owner"

    @property
    def open(self) -> bool:
        return self in (Access.OPEN, Access.OPEN_WRITE)

    @property
    def writes(self) -> bool:
        return self in (Access.OPEN_WRITE, Access.WRITE, Access.WRITE_ALL, Access.WRITE_OWNER)

    @property
    def for_owner(self) -> bool:
        return self in (Access.READ_OWNER, Access.WRITE_OWNER)

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
TOKEN = Subject("token", "A token's id, as it is listed.")


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
    question: bool = False  # for a token that is bound to the question of one task, too
    acts: bool = False  # it reads, and may start something for that: not for a read-only token
    seed: bool = False  # seed 001 asks for it; everything else is ours
    subject: Subject | None = None
    params: type[P] | None = None
    headers: tuple[str, ...] = ()  # of the request, beyond those of every request
    body: type[B] | None = None
    answer: type[A] | None = None
    other: type[Any] | None = None  # the answer in another format, where a parameter chooses it
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
        caller: Caller = scope[CALLER]
        subject = "" if route.subject is None else request.path_params[route.subject.name]
        _check_scope(route, caller, subject)
        if route.access.writes:
            scope[WRITING](token=not route.access.open)
        given: Mapping[str, str] = request.query_params if scope["query_string"] else {}
        if given:
            check_names(given, () if route.params is None else route.params.__struct_encode_fields__)
        if route.access.all_threads and caller.thread is not None:
            text = "This is not for the token of a thread."
            raise Refusal(403, "person_only", text, "Use the server's own token, or its unix socket.")
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


def _check_scope(route: AnyRoute, caller: Caller, subject: str) -> None:
    """The limits of a token that was given out. A route that does not say otherwise is not for a question."""
    if caller.question is not None and not route.access.open:
        if not route.question:
            text = "This token is for the question of one task."
            raise Refusal(403, "question_token", text, f"It reads and answers {caller.question}.")
        if route.subject is TASK and subject != caller.question:
            raise NotFound(f"No task {subject[:128]!r}.", hint=f"This token sees {caller.question} only.")
    if route.access.for_owner and not caller.owner:
        text = "This is not for a token that was given out."
        raise Refusal(403, "person_only", text, "Use the server's own token, or its unix socket.")
    if route.acts and caller.issued is not None and not caller.writes:
        raise Refusal(403, "read_only_token", "This token can only read.", "This may start a server.")


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
