"""Agent Protocol as ASGI, under its own address of the HTTP server and behind its gate."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from meantime.kernel.errors import MeantimeError
from meantime.surfaces.http.dependencies import Dependencies
from meantime.surfaces.http.gate import CALLER, WRITING
from meantime.surfaces.http.protocol_endpoint import AGENT_PROTOCOL, ProtocolServer
from meantime.surfaces.http.request_body import parsed, read
from meantime.surfaces.http.responses import Refusal, json_response, status_of
from meantime.surfaces.http.tokens import Caller

from . import assistant_operations, run_operations, thread_operations
from .operation import Operation, ProtocolRequest, ProtocolSite

LOG = logging.getLogger("meantime.http")


async def get_ok(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    return json_response({"ok": True})


async def get_info(site: ProtocolSite, asked: ProtocolRequest) -> Response:
    return json_response(
        {"version": site.deps.settings.version, "flags": {"assistants": True, "crons": False}}
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/ok", get_ok),
    Operation("GET", "/info", get_info),
    *assistant_operations.OPERATIONS,
    *thread_operations.OPERATIONS,
    *run_operations.OPERATIONS,
)


class OperationEndpoint:
    """One path, as ASGI."""

    def __init__(self, operations: Iterable[Operation], site: ProtocolSite) -> None:
        self._operations = {operation.method: operation for operation in operations}
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        try:
            answer = await self._answer(request)
        except MeantimeError as problem:
            answer = error_answer(problem)
        await answer(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        scope = request.scope
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        operation = next((one for name, one in self._operations.items() if name == method), None)
        if operation is None:
            allow = {"Allow": ", ".join([*self._operations, "OPTIONS"])}
            hint = f"Use {' or '.join(self._operations)}."
            raise Refusal(405, "wrong_method", "This path knows no such method.", hint, allow)
        caller: Caller = scope[CALLER]
        if caller.question is not None:
            text = "This token is for the question of one task."
            raise Refusal(403, "question_token", text, "Use a token of a thread.")
        if method != "GET":
            scope[WRITING](json=operation.body is not None, token=operation.writes)
        body = None
        if operation.body is not None:
            deps = self._site.deps
            body = parsed(await read(request, deps.settings, deps.clock) or b"{}", operation.body)
        return await operation.handler(self._site, ProtocolRequest(request, caller.thread, body))


class AgentProtocolServer:
    def __init__(self, deps: Dependencies) -> None:
        site = ProtocolSite(deps)
        paths: dict[str, list[Operation]] = {}
        for operation in OPERATIONS:
            paths.setdefault(operation.path, []).append(operation)
        endpoints = {path: OperationEndpoint(found, site) for path, found in paths.items()}
        # A path without a name in it comes before one that would take that word for a name.
        ordered = sorted(endpoints, key=lambda path: path.count("{"))
        routes = [Route(AGENT_PROTOCOL + path, endpoints[path]) for path in ordered]
        self._router: ASGIApp = Router(routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._router({**scope, "app": self}, receive, send)
        except HTTPException as problem:
            no = Refusal(problem.status_code, "not_found", "Agent Protocol has nothing here.", _SEE)
            await error_answer(no)(scope, receive, send)

    async def close(self) -> None:
        """Its streams end with the waits of the server."""


_SEE = "docs/guides/agent-protocol.md lists what there is."


def error_answer(problem: MeantimeError) -> Response:
    """In the shape that clients of Agent Protocol read: `detail` is a sentence for people."""
    status = status_of(problem)
    status = 422 if status == 400 else status
    if status == 500:
        LOG.error("A request of Agent Protocol failed.", exc_info=problem)
    detail = f"{problem.message} {problem.hint}".strip()
    headers = problem.headers if isinstance(problem, Refusal) else None
    return json_response({"detail": detail, "code": problem.code}, status, headers)


async def open_server(deps: Dependencies) -> ProtocolServer:
    return AgentProtocolServer(deps)
