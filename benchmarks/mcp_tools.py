"""A no-op tool of a stdio server: through Meantime, and with the SDK's own client beside it."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcp import Client
from mcp.client.stdio import StdioServerParameters

from meantime import Meantime, StdioServer, Tool

from .measure import UNLIMITED, folder, p50, table, us, verdict

ROUNDS = 500
SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("noop")


@server.tool()
def noop() -> str:
    return "done"


server.run("stdio")
"""


async def run() -> None:
    with folder() as path:
        script = path / "server.py"
        script.write_text(SERVER)
        command = [sys.executable, str(script)]
        server = StdioServer(command=command)
        async with (
            Client(StdioServerParameters(command=command[0], args=command[1:])) as client,
            Meantime.open(path / "work.db", settings=UNLIMITED, servers={"s": server}) as mt,
        ):
            thread = mt.thread("bench")

            async def as_task() -> object:
                return await (await thread.start(Tool("s/noop"))).result()

            ways: dict[str, Callable[[], Awaitable[object]]] = {
                "the SDK's client": lambda: client.call_tool("noop", {}),
                "thread.call": lambda: thread.call(Tool("s/noop"), threshold=10.0),
                "thread.start, result, on disk": as_task,
            }
            times = await _time(ways)
    bare = p50(times["the SDK's client"])
    rows: list[list[str]] = []
    for name, taken in times.items():
        over = p50(taken) - bare
        judged = verdict(over * 1e3, 2) if name == "thread.call" else ""
        rows.append([name, us(p50(taken)), us(over) if over else "", judged])
    table(
        f"a no-op tool of a stdio server (p50 of {ROUNDS:,})", ["", "time", "over bare", "target (ms)"], rows
    )
    await _starts()


async def _time(ways: dict[str, Callable[[], Awaitable[object]]]) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    for way in ways.values():
        await way()  # the server is up
    for _ in range(ROUNDS):
        for name, way in ways.items():
            began = time.perf_counter()
            await way()
            times[name].append(time.perf_counter() - began)
    return times


async def _starts() -> None:
    """From nothing to the first answer; the SDK itself is loaded."""
    bare: list[float] = []
    ours: list[float] = []
    with folder() as path:
        script = path / "server.py"
        script.write_text(SERVER)
        for _ in range(5):
            bare.append(await _bare_start(script))
            ours.append(await _our_start(script))
    table(
        "from the start of a server to its first answer (p50 of 5)",
        ["", "time"],
        [["the SDK's client", us(p50(bare))], ["Meantime, with its guard", us(p50(ours))]],
    )


async def _bare_start(script: Path) -> float:
    began = time.perf_counter()
    async with Client(StdioServerParameters(command=sys.executable, args=[str(script)])) as client:
        await client.call_tool("noop", {})
        return time.perf_counter() - began


async def _our_start(script: Path) -> float:
    began = time.perf_counter()
    server = StdioServer(command=[sys.executable, str(script)])
    async with Meantime.open(":memory:", servers={"s": server}) as mt:
        await mt.thread("bench").call(Tool("s/noop"))
        return time.perf_counter() - began
