"""Pydantic AI harness: BackgroundTools, which belong to a run, with StepPersistence in files. After a crash
the conversation goes on from its last snapshot, as its documentation shows."""

from __future__ import annotations

import asyncio
from typing import Any

import workbench
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai_harness import BackgroundTools, StepPersistence
from pydantic_ai_harness.step_persistence import FileStepStore, continue_run
from workbench import converse, model_url, state_folder


async def main() -> None:
    store = FileStepStore(state_folder() / "steps")
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{model_url()}/v1", api_key="none"))
    kept: Any = [BackgroundTools(), StepPersistence(store=store, agent_name="main")]
    one = Agent(model, capabilities=kept)
    for work in (workbench.alpha, workbench.beta):
        one.tool_plain(metadata={"background": True})(work)

    async def say(text: str) -> str:
        runs = await store.list_runs(conversation_id="main")
        history = await continue_run(store, run_id=runs[-1].run_id) if runs else None
        return (await one.run(text, message_history=history, conversation_id="main")).output

    async def state() -> dict[str, str]:
        """By its ledger of tool calls: those that began, and of whose end nothing is known."""
        runs = await store.list_runs(conversation_id="main")
        effects = [await store.list_unresolved_tool_effects(run_id=run.run_id) for run in runs]
        return {effect.tool_name: "unknown_after_crash" for each in effects for effect in each}

    await converse(say, state)


asyncio.run(main())
