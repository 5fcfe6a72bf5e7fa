"""Meantime through its adapter for the OpenAI Agents SDK, with its session on SQLite."""

from __future__ import annotations

from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from meantime_site import SLOW, main
from openai import AsyncOpenAI
from workbench import model_url, state_folder

from agents import Agent, SQLiteSession, set_tracing_disabled  # pyright: ignore
from meantime import Thread
from meantime.integrations.openai_agents import Talk


def talk_of(thread: Thread) -> Talk:
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{model_url()}/v1", api_key="none")
    agent = Agent("helper", model=OpenAIChatCompletionsModel("m", client))  # pyright: ignore
    session = SQLiteSession("main", state_folder() / "session.db")
    return Talk(agent, thread, *SLOW, session=session, threshold=0.05)


main(talk_of)
