"""A server of the SDK's own kind: `sdk.py stdio|http`. Over HTTP it prints its port."""

from __future__ import annotations

import socket
import sys

import anyio
import anyio.lowlevel
import uvicorn
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("sdk")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def steps(count: int, ctx: Context) -> str:
    """Says how far it is."""
    for step in range(count):
        await ctx.report_progress(step + 1, count, f"step {step + 1}")
        await anyio.lowlevel.checkpoint()
    return f"{count} steps"


@server.tool()
async def forever(ctx: Context) -> str:
    """Waits until it is cancelled."""
    await ctx.report_progress(0, 1, "waiting")
    await anyio.sleep_forever()
    return "never"


@server.tool()
def breaks() -> str:
    """Raises."""
    raise ValueError("this tool is broken")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            sys.stdout.write(f"{listening.getsockname()[1]}\n")
            sys.stdout.flush()
            uvicorn.Server(uvicorn.Config(server.streamable_http_app())).run(sockets=[listening])
