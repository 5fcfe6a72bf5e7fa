"""`meantime mcp` beside a bare server of the SDK: a call, a start, and many clients over HTTP."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import uvicorn
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer
from mcp.shared._httpx_utils import create_mcp_http_client

from meantime import Meantime
from meantime.daemon.daemon_autostart import ensure
from meantime.daemon.home import Home
from meantime.daemon.owner_process import owner, terminate

from .mcp_tools import SERVER
from .measure import UNLIMITED, folder, p50, ratio, table, us, verdict

ROUNDS, STARTS, CLIENTS, CALLS = 500, 7, 100, 10


async def run() -> None:
    with folder() as path:
        home = Home(path / "home", path / "config.toml")
        home.config.write_text("[http]\nport = 0\n")
        environ = {**os.environ, "MEANTIME_HOME": str(home.folder), "MEANTIME_CONFIG": str(home.config)}
        os.environ.update(environ)
        script = path / "server.py"
        script.write_text(SERVER)
        bare = StdioServerParameters(command=sys.executable, args=[str(script)])
        ours = StdioServerParameters(
            command=sys.executable, args=["-m", "meantime", "mcp", "--thread", "bench"], env=environ
        )
        await asyncio.to_thread(ensure, home)
        try:
            await _calls(bare, ours)
            await _starts(bare, ours)
        finally:
            leader = owner(home)
            if leader is not None:
                await asyncio.to_thread(terminate, home, leader.pid, signal.SIGUSR1, 30.0)
        await _many(path)


async def _calls(bare: StdioServerParameters, ours: StdioServerParameters) -> None:
    rows: list[list[str]] = []
    for mode, name in (("auto", "2026-07-28"), ("legacy", "2025-11-25")):
        async with Client(bare, mode=mode) as theirs, Client(ours, mode=mode) as own:
            ways = {
                "a bare server's no-op": lambda: theirs.call_tool("noop", {}),
                "list": lambda: own.call_tool("list", {}),
                "start": lambda: own.call_tool("start", {"command": ["true"]}),
            }
            times: dict[str, list[float]] = {name: [] for name in ways}
            for number in range(ROUNDS):
                for which, way in ways.items():
                    if which == "start" and number >= ROUNDS // 10:
                        continue
                    began = time.perf_counter()
                    await way()
                    times[which].append(time.perf_counter() - began)
        least = p50(times["a bare server's no-op"])
        for which, taken in times.items():
            over = p50(taken) - least
            judged = verdict(over * 1e3, 2) if which == "list" else ""
            rows.append([f"{which}, {name}", us(p50(taken)), us(over) if over else "", judged])
    table(f"a call over stdio (p50 of {ROUNDS:,})", ["", "time", "over bare", "target (ms)"], rows)


async def _starts(bare: StdioServerParameters, ours: StdioServerParameters) -> None:
    """From nothing to the first answer; the daemon runs."""
    taken: dict[str, list[float]] = {"bare": [], "ours": []}
    for _ in range(STARTS):
        for name, given, tool in (("bare", bare, "noop"), ("ours", ours, "list")):
            began = time.perf_counter()
            async with Client(given) as client:
                await client.call_tool(tool, {})
                taken[name].append(time.perf_counter() - began)
    theirs, own = p50(taken["bare"]), p50(taken["ours"])
    rows = [["a bare server", us(theirs), ""], ["meantime mcp", us(own), ratio(own, theirs)]]
    table(f"from the start of the process to the first answer (p50 of {STARTS})", ["", "time", ""], rows)


async def _many(path: Path) -> None:
    rows: list[list[str]] = []
    async with (
        Meantime.open(path / "many.db", settings=UNLIMITED) as mt,
        mt.serve(port=0) as door,
        _bare_http() as bare,
    ):
        for mode, name in (("auto", "2026-07-28"), ("legacy", "2025-11-25")):
            places = {
                "a bare server": (f"{bare}/mcp?n=", "noop"),
                "/mcp": (f"{door.url}/mcp?thread=n-", "list"),
            }
            for which, (address, tool) in places.items():
                rows.append([f"{which}, {name}", *await _crowd(address, door.token, mode, tool)])
    head = ["", "all connected", "a call, p50", "calls"]
    table(f"{CLIENTS} clients over HTTP, {CALLS} calls each, all at once (the clients share our core)",
          head, rows)  # fmt: skip


@asynccontextmanager
async def _client(url: str, token: str, mode: str) -> AsyncIterator[Client]:
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
    async with http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        yield client


async def _crowd(address: str, token: str, mode: str, tool: str) -> list[str]:
    times: list[float] = []

    async def several(client: Client) -> None:
        for _ in range(CALLS):
            began = time.perf_counter()
            await client.call_tool(tool, {})
            times.append(time.perf_counter() - began)

    async with AsyncExitStack() as stack:
        began = time.perf_counter()
        coming = [_client(f"{address}{number}", token, mode) for number in range(CLIENTS)]
        clients = [await stack.enter_async_context(one) for one in coming]
        opened = time.perf_counter() - began
        began = time.perf_counter()
        await asyncio.gather(*map(several, clients))
        whole = time.perf_counter() - began
    return [f"{opened:.1f} s", us(p50(times)), f"{CLIENTS * CALLS / whole:,.0f}/s"]


@asynccontextmanager
async def _bare_http() -> AsyncIterator[str]:
    """On this event loop, as ours is."""
    made = MCPServer("noop")
    logging.disable(logging.WARNING)  # it would write three lines for every request

    @made.tool()
    def noop() -> str:
        return "done"

    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        config = uvicorn.Config(made.streamable_http_app(), log_level="error")
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True
        await serving
