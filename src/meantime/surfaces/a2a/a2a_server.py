"""A2A as ASGI, under its own address of the HTTP server: a card and JSON-RPC for each agent."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from meantime.kernel.errors import MeantimeError
from meantime.kernel.model import Json
from meantime.surfaces.agent_runs.streamed_response import StreamedResponse
from meantime.surfaces.http.dependencies import Dependencies
from meantime.surfaces.http.gate import CALLER, WRITING
from meantime.surfaces.http.protocol_endpoint import A2A, ProtocolServer
from meantime.surfaces.http.request_body import read
from meantime.surfaces.http.responses import Refusal, json_response
from meantime.surfaces.http.tokens import Caller

from .a2a_encoding import agent_card
from .a2a_methods import METHODS, A2aCall, A2aSite, Method
from .rpc_messages import (
    INTERNAL,
    UNKNOWN_METHOD,
    VERSION,
    RpcRefusal,
    RpcRequest,
    answered,
    id_of,
    params_of,
    refused,
    request_of,
)

LOG = logging.getLogger("meantime.http")
JSON = {"Content-Type": "application/json"}
SSE = {"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
CARD = "/.well-known/agent-card.json"


class A2aServer:
    def __init__(self, deps: Dependencies) -> None:
        self._deps = deps
        self.site = A2aSite(deps)
        routes = [
            Route(A2A + "/{agent}" + CARD, self.card),
            Route(A2A + "/{agent}", self.rpc, methods=["POST"]),
        ]
        self._router: ASGIApp = Router(routes, redirect_slashes=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._router({**scope, "app": self}, receive, send)

    async def close(self) -> None:
        """Its streams end with the waits of the server."""
        await self.site.pushes.close()

    async def card(self, request: Request) -> Response:
        name = self.site.conversations.check_agent(request.path_params["agent"])
        (agent,) = [one for one in self._deps.owner.about().agents if one.name == name]
        url = f"{self._base(request)}{A2A}/{name}"
        return json_response(agent_card(agent, url, self._deps.settings.version))

    def _base(self, request: Request) -> str:
        """As the client knows the server: the gate has checked the name. A unix socket has none."""
        host = request.headers.get("host", "")
        return f"http://{host}" if ":" in host or not self._deps.settings.url else self._deps.settings.url

    async def rpc(self, request: Request) -> Response:
        caller: Caller = request.scope[CALLER]
        if caller.question is not None:
            text = "This token is for the question of one task."
            raise Refusal(403, "question_token", text, "Use a token of a thread.")
        request.scope[WRITING](token=False)
        agent = self.site.conversations.check_agent(request.path_params["agent"])
        data = await read(request, self._deps.settings, self._deps.clock)
        id = id_of(data)
        try:
            return await self._answer(request, agent, request_of(data))
        except Refusal:
            raise  # the gate's: who may write is not a matter of the protocol
        except MeantimeError as problem:
            return Response(refused(id, problem), headers=JSON)

    async def _answer(self, request: Request, agent: str, asked: RpcRequest) -> Response:
        version = request.headers.get("a2a-version", "1.0")
        if version.partition(".")[0] != "1":
            raise RpcRefusal(VERSION, f"Version {version[:20]!r} of A2A is not supported.", "Use 1.0.")
        method = METHODS.get(asked.method)
        if method is None:
            known = ", ".join(METHODS)
            raise RpcRefusal(
                UNKNOWN_METHOD, f"The method {asked.method[:64]!r} is not known.", f"Use one of: {known}."
            )
        if method.writes:
            request.scope[WRITING]()
        call = A2aCall(self.site, agent, request.scope[CALLER].thread, params_of(asked, method.params))
        if method.answer is not None:
            return Response(answered(asked.id, await method.answer(call)), headers=JSON)
        return await self._parts(asked, method, call)

    async def _parts(self, asked: RpcRequest, method: Method, call: A2aCall) -> Response:
        """The first part is made before the answer begins, so that a refusal is an answer of its own."""
        assert method.parts is not None
        parts = method.parts(call)
        first = await anext(parts)
        written = _events if method.streams else _last
        return StreamedResponse(
            written(asked, first, parts), self._deps.polls, SSE if method.streams else JSON
        )


async def _events(asked: RpcRequest, first: Json, parts: AsyncGenerator[Json]) -> AsyncGenerator[bytes]:
    """None is a comment, so that no proxy takes the connection for dead."""
    async with aclosing(parts):
        yield b"data: %s\n\n" % answered(asked.id, first)
        try:
            async for part in parts:
                yield (
                    b": the task continues\n\n"
                    if part is None
                    else b"data: %s\n\n" % answered(asked.id, part)
                )
        except MeantimeError as problem:
            yield b"data: %s\n\n" % refused(asked.id, problem)


async def _last(asked: RpcRequest, first: Json, parts: AsyncGenerator[Json]) -> AsyncGenerator[bytes]:
    """White space until the last part is there."""
    async with aclosing(parts):
        yield b"\n"
        try:
            async for part in parts:
                yield b"\n" if part is None else answered(asked.id, part)
        except MeantimeError as problem:
            yield refused(asked.id, problem)
        except Exception:
            LOG.exception("A request of A2A failed.")
            yield refused(
                asked.id, RpcRefusal(INTERNAL, "The request failed; the log of this process says why.")
            )


async def open_server(deps: Dependencies) -> ProtocolServer:
    server = A2aServer(deps)
    await server.site.pushes.open()
    return server
