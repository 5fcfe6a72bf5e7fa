"""fastmcp-tasks on Redis: a tool of an MCP server that runs as a task, and its client, in one process."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import facts

os.environ["FASTMCP_DOCKET_REDELIVERY_TIMEOUT"] = f"PT{float(os.environ['QUEUE_VISIBILITY']):g}S"
from fastmcp import Client, FastMCP
from fastmcp_tasks import TasksExtension, ToolTask, call_tool_task
from fastmcp_tasks.client_models import ClientCreateTaskResult

IDS = Path(os.environ["QUEUE_FOLDER"]) / "ids"  # the server chooses the ids; a client keeps them
server = FastMCP("work")
server.add_extension(TasksExtension(url=os.environ["QUEUE_URL"]))
tasks: dict[str, ToolTask] = {}


@server.tool(task=True)
async def work(id: str, seconds: float) -> float:
    return await facts.waited(id, seconds)


async def main() -> None:
    IDS.mkdir(exist_ok=True)
    async with Client(server) as client:

        async def submit(id: str, seconds: float) -> None:
            tasks[id] = await call_tool_task(client, "work", {"id": id, "seconds": seconds})
            if seconds:
                (IDS / id).write_text(tasks[id].create_result.model_dump_json(by_alias=True))

        async def result(id: str) -> float:
            return (await (tasks.pop(id, None) or found(id)).result()).data

        def found(id: str) -> ToolTask:
            return ToolTask(
                client, "work", ClientCreateTaskResult.model_validate_json((IDS / id).read_text())
            )

        await facts.Commands(submit, result).serve()


asyncio.run(main())
