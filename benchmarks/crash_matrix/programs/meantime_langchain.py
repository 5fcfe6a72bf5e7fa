"""Meantime through its adapter for LangChain, with LangGraph's checkpointer on SQLite."""

from __future__ import annotations

import asyncio

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from meantime_site import SLOW, hold
from workbench import model_url, state_folder

from meantime import Thread
from meantime.integrations.langchain import Background, Talk


async def main() -> None:
    model = ChatAnthropic(model_name="m", base_url=model_url(), api_key="none", timeout=60, stop=None)  # pyright: ignore
    async with AsyncSqliteSaver.from_conn_string(str(state_folder() / "checkpoints.db")) as saver:

        def talk_of(thread: Thread) -> Talk:
            own = Background(thread, *SLOW, threshold=0.05)
            return Talk(create_agent(model, middleware=[own], checkpointer=saver), own)

        await hold(talk_of)


asyncio.run(main())
