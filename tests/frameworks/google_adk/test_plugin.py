"""The plugin by itself, in an app that its user runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent, SequentialAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import AgentTool
from google.genai.types import Content, Part

from meantime import Meantime, background
from meantime.integrations.google_adk import Background, Talk
from meantime.kernel.errors import InvalidInput
from meantime.testing.talk import ToolCall
from meantime.testing.talk.talk_site import ids_in

from .adk_site import ScriptedModel

pytestmark = pytest.mark.anyio


@background
async def crawl(site: str) -> str:
    """Crawls a site."""
    return f"{site} has 3 pages"


async def ended(mt: Meantime, site: str = "a.org") -> str:
    task = await mt.thread("c").start(crawl.work(site))
    await mt.thread("c").wait(task)
    return f"{task.id}.1"


def scripted(*steps: Any) -> ScriptedModel:
    model = ScriptedModel(model="scripted")
    model._steps += steps
    return model


async def ran(mt: Meantime, agent: Any, *texts: str) -> list[Any]:
    """The runs of an app with the plugin."""
    app = App(name="app", root_agent=agent, plugins=[Background(mt.thread("c"), crawl)])
    runner = Runner(app=app, session_service=InMemorySessionService(), auto_create_session=True)
    problems: list[Any] = []
    for text in texts:
        said = Content(role="user", parts=[Part(text=text)])
        try:
            async for _ in runner.run_async(user_id="u", session_id="s", new_message=said):
                pass
            problems.append(None)
        except Exception as problem:
            problems.append(problem)
    return problems


async def test_a_run_is_told_before_its_prompt_and_acknowledges_it(tmp_path: Path):
    model = scripted("it has 3", "as I said")
    async with Meantime.open(tmp_path / "work.db") as mt:
        notices = [await ended(mt, site) for site in ("b.org", "a.org")]
        await ran(mt, LlmAgent(name="a", model=model), "how big?", "sorry?")
        assert ids_in(model._requests[0].notices) == notices
        assert model._requests[0].prompts[-1] == "how big?"
        assert "crawl" in model._requests[0].tools
        assert ids_in(model._requests[1].notices) == notices, "each is in the conversation once"
        assert await mt.notices() == []


async def test_a_run_that_failed_tells_it_once_when_it_is_repeated(tmp_path: Path):
    model = scripted(ConnectionError("away"), "it has 3")
    async with Meantime.open(tmp_path / "work.db") as mt:
        notice = await ended(mt)
        problems = await ran(mt, LlmAgent(name="a", model=model), "how big?", "how big?")
        assert [type(problem) for problem in problems] == [ConnectionError, type(None)]
        assert ids_in(model._requests[1].notices) == [notice]
        assert await mt.notices() == []


@pytest.mark.filterwarnings("ignore:The `plugins` argument:DeprecationWarning")  # the ADK's own
async def test_an_agent_that_is_a_tool_is_told_nothing(tmp_path: Path):
    """It has a conversation of its own."""
    inner, outer = scripted("inner answer"), scripted(ToolCall("inner", {"request": "go"}), "ok")
    tool = AgentTool(LlmAgent(name="inner", model=inner, description="Helps."))
    async with Meantime.open(tmp_path / "work.db") as mt:
        notice = await ended(mt)
        await ran(mt, LlmAgent(name="outer", model=outer, tools=[tool]), "go")
        assert inner._requests[0].notices == []
        assert ids_in(outer._requests[1].notices) == [notice]
        assert await mt.notices() == []


@pytest.mark.filterwarnings("ignore:SequentialAgent:DeprecationWarning")
async def test_a_workflow_is_woken_with_what_ended(tmp_path: Path):
    """It always needs a message, so the last notice is one."""
    model = scripted("it has 3")
    agent = SequentialAgent(name="steps", sub_agents=[LlmAgent(name="a", model=model)])
    async with Meantime.open(tmp_path / "work.db") as mt:
        notices = [await ended(mt, site) for site in ("b.org", "a.org")]
        assert await Talk(agent, mt.thread("c")).say() == "it has 3"
        assert ids_in(model._requests[0].notices) == notices
        assert await mt.notices() == []


async def test_wrong_parts_of_a_talk_are_named(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        with pytest.raises(InvalidInput, match="not an agent"):
            Talk("agent", mt.thread("c"))  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidInput, match="not a thread"):
            Background("c")  # pyright: ignore[reportArgumentType]
