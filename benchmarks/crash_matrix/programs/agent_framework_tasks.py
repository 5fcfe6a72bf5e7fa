"""agent-framework: its own background agents, with the session of the conversation in files."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import workbench
from agent_framework import Agent, BackgroundAgentsProvider, FileHistoryProvider, FileSessionStore
from chat_client import HttpChatClient
from workbench import converse, state_folder

SOURCE = "background_agents"


async def main() -> None:
    child = Agent(HttpChatClient(), "You work.", name="worker", tools=[workbench.alpha, workbench.beta])
    history = FileHistoryProvider(str(state_folder() / "history"))
    one = Agent(HttpChatClient(), "You talk.", context_providers=[history, BackgroundAgentsProvider([child])])
    store = FileSessionStore(state_folder() / "sessions")
    session: Any = await store.get("main") or one.create_session(session_id="main")

    async def say(text: str) -> str:
        said = await one.run(text, session=session)
        await store.set("main", session)
        return said.text

    async def state() -> dict[str, str]:
        tasks = session.state.get(SOURCE, {}).get("tasks", [])
        found = {re.search("alpha|beta", task["description"]): task["status"] for task in tasks}
        return {name[0]: status for name, status in found.items() if name}

    await converse(say, state)


asyncio.run(main())
