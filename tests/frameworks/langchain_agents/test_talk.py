"""Agents of LangChain and deepagents pass every check of the public suite."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from say_table import check_row

from meantime import Meantime
from meantime.integrations.langchain import Background, Talk
from meantime.testing.suite.patience import within
from meantime.testing.talk import TALK_CHECKS, Check, TalkFixture
from meantime.testing.talk.talk_site import ids_in

from .langchain_site import ScriptedModel, langchain_site

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("create", [create_agent, create_deep_agent])
@pytest.mark.parametrize("check", TALK_CHECKS, ids=lambda check: check.__name__)
async def test_an_agent_of_langchain_or_deepagents(check: Check, create: Callable[..., Any], tmp_path: Path):
    async with langchain_site(tmp_path, create) as site:
        await check(TalkFixture(site))


@pytest.mark.parametrize("create", [create_agent, create_deep_agent])
async def test_the_guide_says_what_comes_out_of_say(create: Callable[..., Any], tmp_path: Path):
    async with langchain_site(tmp_path, create) as site:
        await check_row("LangChain, LangGraph, deepagents", site)


class FailingSaver(InMemorySaver):
    """Keeps what a run begins with, and then nothing, as if the process were killed there."""

    fails = True

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if self.fails and metadata["source"] == "loop":
            raise OSError("killed here")
        return await super().aput(config, checkpoint, metadata, new_versions)


async def test_a_run_that_was_cut_off_at_its_first_step_loses_no_place(tmp_path: Path):
    """LangGraph shows the input of such a run as if the conversation held it, and drops it with the next."""
    model, saver = ScriptedModel(), FailingSaver()
    model._steps += ["first", "second"]
    fixture: Any = TalkFixture(None)  # pyright: ignore[reportArgumentType]
    async with Meantime.open(tmp_path / "talk.db") as mt:
        thread = mt.thread("t")
        background = Background(thread)
        talk = Talk(create_agent(model, middleware=[background], checkpointer=saver), background)
        tasks = [await fixture.ended(thread)]
        with pytest.raises(OSError, match="killed here"):
            await within(talk.say())
        saver.fails = False
        tasks.append(await fixture.ended(thread, "b.org"))
        await within(talk.say("hello"))
        assert ids_in(model._requests[-1].notices) == [f"{task.id}.1" for task in tasks]
        assert model._requests[-1].prompts[-1] == "hello"
