"""Meantime through its adapter for Pydantic AI, with its history in a file."""

from __future__ import annotations

from meantime_site import SLOW, main
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from workbench import model_url, state_folder

from meantime import Thread
from meantime.integrations.pydantic_ai import Talk


def talk_of(thread: Thread) -> Talk:
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{model_url()}/v1", api_key="none"))
    return Talk(Agent(model), thread, *SLOW, threshold=0.05, history=state_folder() / "history.jsonl")


main(talk_of)
