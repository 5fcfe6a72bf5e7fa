"""Strands: background tools, with its session in files. Endings are delivered with the next invocation."""

from __future__ import annotations

import asyncio
from typing import Any

import workbench
from strands import Agent, tool
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager
from workbench import converse, model_url, state_folder

KEY = "strands.background_tasks"  # of the agent's state


def agent() -> Any:
    return Agent(
        agent_id="main",
        model=OpenAIModel(client_args={"base_url": f"{model_url()}/v1", "api_key": "none"}, model_id="m"),
        tools=[tool(workbench.alpha), tool(workbench.beta)],
        background_tasks={"always": ["alpha", "beta"], "wait_for_completion": False},
        session_manager=FileSessionManager("main", storage_dir=str(state_folder() / "sessions")),
        callback_handler=None,
    )


async def main() -> None:
    one = agent()

    async def state() -> dict[str, str]:
        return {task["tool_name"]: task["status"] for task in one.state.get(KEY) or ()}

    await converse(one.invoke_async, state)


asyncio.run(main())
