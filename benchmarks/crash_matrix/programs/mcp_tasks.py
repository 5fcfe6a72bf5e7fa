"""FastMCP: tools as background tasks of an MCP server, on Redis that writes each command to disk.

An MCP server tells nobody: its client asks. So the program holds a conversation that starts tasks and keeps
their ids, and what becomes of them is asked at the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import workbench
from workbench import converse, model_url, state_folder

REDELIVERY = "PT5S"  # five seconds; a worker that is gone for so long loses its tasks to the next one
PATIENCE = 30.0


def serve_redis() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(state_folder()),
             "--appendonly", "yes", "--appendfsync", "always", "--save", ""]  # fmt: skip
    subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    return f"redis://127.0.0.1:{port}/0"


async def until_up(url: str) -> None:
    host, port = url.removeprefix("redis://").removesuffix("/0").split(":")
    until = asyncio.get_running_loop().time() + PATIENCE
    while True:
        try:
            _, writer = await asyncio.open_connection(host, int(port))
            writer.close()
            return
        except OSError:
            if asyncio.get_running_loop().time() > until:
                raise
            await asyncio.sleep(0.05)


def ask(messages: list[dict[str, Any]]) -> dict[str, Any]:
    tools = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
             for name in ("alpha", "beta")]  # fmt: skip
    body = json.dumps({"model": "m", "messages": messages, "tools": tools}).encode()
    request = urllib.request.Request(
        f"{model_url()}/v1/chat/completions", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)["choices"][0]["message"]


class Conversation:
    """Its messages, and the ids of its tasks, in a file that is replaced whole."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._path = state_folder() / "conversation.json"
        kept = json.loads(self._path.read_text()) if self._path.exists() else {"messages": [], "tasks": {}}
        self._messages: list[dict[str, Any]] = kept["messages"]
        self._tasks: dict[str, str] = kept["tasks"]

    async def say(self, text: str) -> str:
        from fastmcp_tasks import call_tool_task

        self._messages.append({"role": "user", "content": text})
        while True:
            reply = await asyncio.to_thread(ask, self._messages)
            self._messages.append(reply)
            for call in reply.get("tool_calls") or ():
                name = call["function"]["name"]
                task = await call_tool_task(self._client, name)
                self._tasks[name] = task.task_id
                content = f"started as task {task.task_id}"
                self._messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})
            self._keep()
            if not reply.get("tool_calls"):
                return reply.get("content") or ""

    async def state(self) -> dict[str, str]:
        from fastmcp_tasks.client_models import ClientGetTaskResult, GetTaskRequest, GetTaskRequestParams

        found: dict[str, str] = {}
        for name, id in self._tasks.items():
            request: Any = GetTaskRequest(params=GetTaskRequestParams(task_id=id))
            found[name] = (await self._client.session.send_request(request, ClientGetTaskResult)).status
        return found

    def _keep(self) -> None:
        new = Path(f"{self._path}.new")
        new.write_text(json.dumps({"messages": self._messages, "tasks": self._tasks}))
        new.replace(self._path)


async def main() -> None:
    url = serve_redis()
    await until_up(url)
    os.environ["FASTMCP_DOCKET_REDELIVERY_TIMEOUT"] = REDELIVERY
    from fastmcp import Client, FastMCP
    from fastmcp_tasks import TasksExtension

    server = FastMCP("work")
    server.add_extension(TasksExtension(url=url))
    for work in (workbench.alpha, workbench.beta):
        server.tool(task=True)(work)
    async with Client(server) as client:
        one = Conversation(client)
        await converse(one.say, one.state)


asyncio.run(main())
