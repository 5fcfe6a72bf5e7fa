"""One path: what each method does there. Every POST passes the gate's rules for writing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from .answers import Refusal
from .gate import CALLER, WRITING
from .parameters import check, known
from .tokens import Caller

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
Table: TypeAlias = Mapping[str, Handler]  # by "GET /v1/tasks"


class Endpoint:
    """As ASGI. HEAD is a GET whose body the server leaves out."""

    def __init__(self, path: str, handlers: Mapping[str, Handler]) -> None:
        self.handlers = dict(handlers)
        self._parameters = {method: known().get(f"{method} {path}", frozenset()) for method in handlers}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        handler = self.handlers.get(method)
        if handler is None:
            raise self._wrong_method()
        if method == "POST":
            scope[WRITING]()
        request = Request(scope, receive, send)
        if request.scope["query_string"]:
            check(request.query_params, self._parameters[method])
        response = await handler(request)
        await response(scope, receive, send)

    def _wrong_method(self) -> Refusal:
        allow = ["GET", "HEAD"] if "GET" in self.handlers else []
        allow += ["POST"] if "POST" in self.handlers else []
        code, text = ("wrong_method", "This path knows no such method.")
        if "POST" not in self.handlers:
            code, text = ("read_only", "This path only reads.")
        hint = f"Use {' or '.join(self.handlers)}."
        return Refusal(405, code, text, hint, {"Allow": ", ".join([*allow, "OPTIONS"])})


def by_path(*tables: Table) -> dict[str, Endpoint]:
    """The paths, in the order in which they are named first."""
    found: dict[str, dict[str, Handler]] = {}
    for table in tables:
        for name, handler in table.items():
            method, path = name.split(" ")
            found.setdefault(path, {})[method] = handler
    return {path: Endpoint(path, handlers) for path, handlers in found.items()}


def thread_of(request: Request) -> str | None:
    """What the caller may see: one thread, or None for everything."""
    caller: Caller = request.scope[CALLER]
    return caller.thread


def person_only(request: Request) -> None:
    if thread_of(request) is not None:
        text = "This is not for the token of a thread."
        raise Refusal(403, "person_only", text, "Use the door's own token, or its unix socket.")
