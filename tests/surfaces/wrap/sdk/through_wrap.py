"""A plugin of pytest for the MCP SDK's own tests: their servers are on a real port, and their clients reach
them directly, through a wrap behind a URL, or through a wrap on stdio. No test is changed.

The SDK's tests get their client from a fixture, `connect`, by the name of a transport. Here one of these
names stands for another way; the other transports are not run. The environment is that of the SDK, without
Meantime."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from itertools import count
from typing import Any

import pytest
import uvicorn
from anyio import CancelScope
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from uvicorn.server import ServerState

ARM = "streamable-http"  # the transport whose tests are run
WAY = json.loads(os.environ["SDK_WAY"])  # {"url": …} or {"command": [word, …]}; THREAD stands for a new name
LISTENING = int(os.environ["SDK_SOCKET"])  # a descriptor
REPORT = os.environ["SDK_REPORT"]
OPEN_TO_ALL = TransportSecuritySettings(enable_dns_rebinding_protection=False)
LAST_WORDS = 5.0  # seconds for requests whose client has gone
_threads = count(1)
# Each client of a test would load the certificates of the world, for addresses without TLS: 50 ms each.
ssl.create_default_context = cache(ssl.create_default_context)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    conftest = importlib.import_module("tests.interaction.conftest")  # of the SDK
    conftest._FACTORIES[ARM] = connected
    kept = [one for one in items if getattr(one, "callspec", None) and _arm(one) == ARM]
    config.hook.pytest_deselected(items=[one for one in items if one not in kept])
    items[:] = kept


def _arm(item: Any) -> str:
    transport, _ = item.callspec.params.get("connect", ("", ""))
    return transport


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        with open(REPORT, "a") as file:
            said = str(report.longrepr or "")[-4000:]
            file.write(json.dumps([report.nodeid.partition("interaction/")[2], report.outcome, said]) + "\n")


@asynccontextmanager
async def connected(
    server: Any, *, spec_version: str = LATEST_HANDSHAKE_VERSION, **callbacks: Any
) -> AsyncIterator[Client]:
    mode = spec_version if spec_version in MODERN_PROTOCOL_VERSIONS else "legacy"
    app = server.streamable_http_app(transport_security=OPEN_TO_ALL)
    async with (
        server.session_manager.run(),
        on_the_port(app),
        Client(transport(), mode=mode, **callbacks) as client,
    ):
        yield client


def transport() -> Any:
    thread = f"sdk-{os.getpid()}-{next(_threads)}"
    if "url" in WAY:
        return streamable_http_client(WAY["url"].replace("THREAD", thread))
    command, *args = (word.replace("THREAD", thread) for word in WAY["command"])
    return stdio_client(StdioServerParameters(command=command, args=args, env=dict(os.environ)))


@asynccontextmanager
async def on_the_port(app: Callable[..., Any]) -> AsyncIterator[None]:
    """uvicorn's connections without its server, which waits for clients that keep theirs open, and looks ten
    times a second whether they have left."""
    config = uvicorn.Config(app, lifespan="off", log_level="critical")
    config.load()
    state = ServerState()
    protocol: Any = config.http_protocol_class

    def accepted() -> Any:
        return protocol(config=config, server_state=state, app_state={})

    listening = socket.socket(fileno=os.dup(LISTENING))
    server = await asyncio.get_running_loop().create_server(accepted, sock=listening)
    try:
        yield
    finally:
        server.close()
        for connection in list(state.connections):
            connection.transport.abort()
        with CancelScope(shield=True):
            if state.tasks:
                await asyncio.wait(state.tasks, timeout=LAST_WORDS)
