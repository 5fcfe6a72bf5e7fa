"""A server of another make, with tasks by the extension: fastmcp-tasks. `foreign.py stdio|http`. Over
HTTP it prints its port."""

from __future__ import annotations

import asyncio
import socket
import sys
from datetime import timedelta
from pathlib import Path

import uvicorn
from fastmcp import FastMCP  # pyright: ignore[reportMissingImports]
from fastmcp.utilities.tasks import TaskConfig  # pyright: ignore[reportMissingImports]
from fastmcp_tasks import TasksExtension  # pyright: ignore[reportMissingImports]

server = FastMCP("foreign")
server.add_extension(TasksExtension())
AS_TASK = TaskConfig(mode="required", poll_interval=timedelta(seconds=0.2))  # five, where nothing is said


@server.tool(task=AS_TASK)
async def gate(mark: str, folder: str) -> str:
    with (Path(folder) / "calls").open("a") as file:
        file.write(mark + "\n")
    try:
        while not (Path(folder) / "gate").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        (Path(folder) / "stopped").write_text(mark)
        raise
    return f"through {mark}"


@server.tool(task=AS_TASK)
async def breaks() -> str:
    raise ValueError("this one is broken")


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        server.run("stdio", show_banner=False)
    else:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            sys.stdout.write(f"{listening.getsockname()[1]}\n")
            sys.stdout.flush()
            uvicorn.Server(uvicorn.Config(server.http_app())).run(sockets=[listening])
