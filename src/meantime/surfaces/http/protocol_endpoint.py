"""Protocols of other ecosystems on this server, each under an address of its own and behind the same gate.
Their packages are loaded with the first request for them."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any, Protocol

from starlette.types import Receive, Scope, Send

from meantime.kernel.errors import Closed

from .dependencies import Dependencies

AGENT_PROTOCOL, A2A = "/agent-protocol", "/a2a"
MODULES = {
    AGENT_PROTOCOL: "meantime.surfaces.agent_protocol.protocol_server",
    A2A: "meantime.surfaces.a2a.a2a_server",
}
PUSHES = "pushes.json"  # in the server's folder: webhooks that a former server of A2A was to tell
_LASTING = ("/stream", "/wait", "/cancel")  # ends of paths whose POST waits or streams


class ProtocolServer(Protocol):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    async def close(self) -> None: ...


class ProtocolEndpoint:
    def __init__(self, address: str, deps: Dependencies) -> None:
        self._address = address
        self._deps = deps
        self._server: asyncio.Task[ProtocolServer] | None = None
        self._closed = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._closed:
            raise Closed
        server = await asyncio.shield(self._begun())
        await server(scope, receive, send)

    def restore(self) -> None:
        """Loads the package now if a former server has left something to do."""
        folder = self._deps.settings.folder
        if self._address == A2A and folder is not None and (folder / PUSHES).exists():
            self._begun()

    def _begun(self) -> asyncio.Task[ProtocolServer]:
        if self._server is None:
            self._server = asyncio.ensure_future(self._load())
        return self._server

    async def _load(self) -> ProtocolServer:
        """It takes a while: the event loop goes on meanwhile."""
        module: Any = await asyncio.to_thread(importlib.import_module, MODULES[self._address])
        return await module.open_server(self._deps)

    async def close(self) -> None:
        self._closed = True
        if self._server is not None:
            await asyncio.wait([self._server])
            if self._server.exception() is None:
                await self._server.result().close()


def lasts(path: str) -> bool:
    """Whether a POST to it waits or streams."""
    return path.startswith(f"{A2A}/") or (path.startswith(f"{AGENT_PROTOCOL}/") and path.endswith(_LASTING))
