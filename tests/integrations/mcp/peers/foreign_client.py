"""A client of another make, with tasks by the extension: fastmcp, with fastmcp-tasks.

It is given what to do on stdin as one JSON object, and prints what it saw as another: `server` is a command
with its environment, or a url with its token; `calls` are made one after the other, each to its end;
`cancelled` is started as a task and not wanted any more; `asked` is a call whose question is answered with
`answer`."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client  # pyright: ignore[reportMissingImports]
from fastmcp.client.elicitation import ElicitResult  # pyright: ignore[reportMissingImports]
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport  # pyright: ignore[reportMissingImports]
from fastmcp_tasks.client import call_tool_task  # pyright: ignore[reportMissingImports]

PATIENCE = 120.0


def transport(server: dict[str, Any]) -> Any:
    if "url" in server:
        return StreamableHttpTransport(server["url"], headers={"Authorization": f"Bearer {server['token']}"})
    program, *arguments = server["command"]
    return StdioTransport(program, arguments, env=server["environ"])


def seen(result: Any) -> dict[str, Any]:
    return {"error": result.is_error, "texts": [block.text for block in result.content]}


async def main(order: dict[str, Any]) -> dict[str, Any]:
    questions: list[str] = []

    async def answered(message: str, kind: type | None, params: Any, context: Any) -> ElicitResult:
        questions.append(message)
        return ElicitResult(action="accept", content={"answer": order["answer"]})

    saw: dict[str, Any] = {"calls": [], "states": []}
    async with Client(transport(order["server"]), elicitation_handler=answered) as client:
        saw["tools"] = [tool.name for tool in await client.list_tools()]
        for name, arguments in order.get("calls", ()):
            saw["calls"].append(seen(await client.call_tool(name, arguments, raise_on_error=False)))
        if "cancelled" in order:
            task = await call_tool_task(client, *order["cancelled"])
            saw["states"].append((await task.status()).status)
            await task.cancel()
            saw["states"].append((await task.wait(timeout=PATIENCE)).status)
        if "asked" in order:
            task = await call_tool_task(client, *order["asked"])
            saw["states"].append((await task.wait(state="input_required", timeout=PATIENCE)).status)
            saw["asked"] = seen(await task.result())
        if "last" in order:
            saw["last"] = seen(await client.call_tool(*order["last"]))
    return {**saw, "questions": questions}


if __name__ == "__main__":
    json.dump(asyncio.run(main(json.load(sys.stdin))), sys.stdout)
