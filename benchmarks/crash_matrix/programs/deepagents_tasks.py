"""deepagents: async subagents on LangGraph's server for development, which keeps its state in a folder."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from langgraph_sdk import get_client
from workbench import converse, state_folder

PATIENCE = 60.0
GRAPHS = Path(__file__).with_name("deepagents_graphs.py")


def serve() -> str:
    config = state_folder() / "langgraph.json"
    graphs = {name: f"{GRAPHS}:{name}" for name in ("main", "alpha", "beta")}
    config.write_text(json.dumps({"dependencies": ["."], "graphs": graphs}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).with_name("langgraph")
    words = [program, "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port),
             "--n-jobs-per-worker", "4"]  # fmt: skip
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "NO_COLOR": "1"}
    environ = {**os.environ, **quiet, "PYTHONPATH": str(GRAPHS.parent)}
    subprocess.Popen(words, env=environ, cwd=state_folder(), stdin=subprocess.DEVNULL, stdout=sys.stderr)
    return f"http://127.0.0.1:{port}"


async def main() -> None:
    client = get_client(url=serve())
    until = asyncio.get_running_loop().time() + PATIENCE
    while True:
        try:
            await client.assistants.search(limit=1)
            break
        except Exception:
            if asyncio.get_running_loop().time() > until:
                raise
            await asyncio.sleep(0.2)
    known = state_folder() / "thread"
    if not known.exists():
        known.write_text((await client.threads.create())["thread_id"])
    thread = known.read_text()

    async def say(text: str) -> str:
        given = {"messages": [{"role": "user", "content": text}]}
        made: Any = await client.runs.wait(thread, "main", input=given, multitask_strategy="enqueue")
        return str(made)[-200:]

    async def state() -> dict[str, str]:
        """By the server: what the agent would be told if it asked."""
        found: dict[str, str] = {}
        for each in await client.threads.search(metadata={"parent_thread_id": thread}):
            runs = await client.runs.list(each["thread_id"])
            found[str((each.get("metadata") or {}).get("subagent_name"))] = (
                runs[0]["status"] if runs else "none"
            )
        return found

    await converse(say, state)


asyncio.run(main())
