"""An agent of LangChain or deepagents as a background task."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime, tool
from langgraph.types import interrupt
from task_suite import TASK_CHECKS, Fixture, Work, hosted, question_of
from task_suite import Check as TaskCheck

from meantime import Agent, Meantime, Status
from meantime.kernel.lines import Kind
from meantime.ports.session import AgentSettings
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture
from meantime.testing.talk import ToolCall

from .langchain_site import ScriptedModel
from .pupil import Pupil

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", SESSION_HOST_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_contract_of_session_hosts(check: Check, tmp_path: Path):
    agent = create_agent(Pupil())
    fixture = HostFixture(lambda: hosted(agent), AgentSettings(runner="python"), tmp_path)
    try:
        await check(fixture)
    finally:
        await fixture.host.close()


class LangChainTaskSite:
    framework = "LangChain, LangGraph, deepagents"

    def __init__(self, create: Callable[..., Any]) -> None:
        self.work = Work()
        self.models: list[str] = []  # its model cannot be chosen
        self._create = create
        self._model = ScriptedModel()
        self.requests = self._model._requests

    def agent(self, *steps: Any) -> Any:
        self._model._steps[:] = steps
        review = HumanInTheLoopMiddleware(interrupt_on={"deploy": True})
        tools = [tool(self.work.look), tool(self.work.dig), tool(self.work.deploy)]
        return self._create(self._model, tools, middleware=[review])

    def asker(self, *steps: Any) -> Any:
        @tool
        def whoami(runtime: ToolRuntime[Any, Any]) -> str:
            """Says who asks."""
            return runtime.context["user"]

        self._model._steps[:] = steps
        return self._create(self._model, [whoami], context_schema=dict)

    def pupil(self) -> Any:
        return self._create(Pupil())

    def named(self, tool: str) -> str:
        return tool


@pytest.mark.parametrize("create", [create_agent, create_deep_agent])
@pytest.mark.parametrize("check", TASK_CHECKS, ids=lambda check: check.__name__)
async def test_as_a_task(check: TaskCheck, create: Callable[..., Any], tmp_path: Path):
    await check(Fixture(LangChainTaskSite(create), tmp_path))


def scripted(*steps: Any, tools: tuple[Any, ...]) -> Any:
    model = ScriptedModel()
    model._steps += steps
    return create_agent(model, list(tools))


async def test_an_interrupt_of_its_own_is_a_question_that_outlives_a_restart(tmp_path: Path):
    @tool
    def ask(what: str) -> str:
        """Asks a person."""
        return f"they said {interrupt({'question': what})}"

    agent = scripted(ToolCall("ask", {"what": "which colour?"}), "blue it is", tools=(ask,))
    async with Meantime.open(tmp_path / "work.db", agents={"ops": agent}) as mt:
        task = await mt.thread("t").start(Agent("ops", "paint it"))
        assert (await question_of(mt, task.id)).text == "which colour?"
    async with Meantime.open(tmp_path / "work.db", agents={"ops": agent}) as mt:
        await mt.answer(task.id, "blue")
        (ended,) = await mt.thread("t").wait(task.id)
        assert "blue it is" in str(ended.outcome)
        results = [line.text for line in await mt.thread("t").lines(task.id) if line.kind is Kind.RESULT]
        assert results == ["they said blue"]


async def test_a_bug_of_the_agent_fails_the_task_with_its_trace(tmp_path: Path):
    @tool
    def broken() -> str:
        """Breaks."""
        raise ValueError("a bug")

    agent = scripted(ToolCall("broken", {}), tools=(broken,))
    async with Meantime.open(tmp_path / "work.db", agents={"buggy": agent}) as mt:
        task = await mt.thread("t").start(Agent("buggy", "go"))
        (ended,) = await mt.thread("t").wait(task)
        assert ended.status is Status.FAILED
        assert "a bug" in str(ended.outcome)
        assert "Traceback" in str(ended.outcome)


@pytest.mark.parametrize("create", [create_agent, create_deep_agent])
async def test_a_session_grows_with_what_is_said_and_not_with_its_steps(
    tmp_path: Path, create: Callable[..., Any]
):
    """Each step of a graph is a checkpoint, and most savers keep the whole conversation in each."""
    fixture = HostFixture(lambda: hosted(create(Pupil())), AgentSettings(runner="python"), tmp_path)
    session, brief = await fixture.begin()
    sizes: list[int] = []
    for _ in range(12):
        await fixture.say(session, brief, "walnut" * 500)
        (file,) = (tmp_path / "host").glob("*.checkpoints")
        sizes.append(file.stat().st_size)
    grown = [after - before for before, after in pairwise(sizes)]
    assert grown[-1] < 1.5 * grown[1], grown
    await fixture.host.close()
