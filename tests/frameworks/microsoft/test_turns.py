"""An agent of agent-framework as a background task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent as FrameworkAgent
from agent_framework import FunctionInvocationContext, tool
from task_suite import TASK_CHECKS, Fixture, Work, hosted
from task_suite import Check as TaskCheck

from meantime import Agent, Meantime, PythonAgent, Status
from meantime.kernel.lines import Kind
from meantime.ports.session import AgentSettings
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture
from meantime.testing.talk import ToolCall

from .pupil import Pupil
from .scripted_client import ScriptedClient

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", SESSION_HOST_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_contract_of_session_hosts(check: Check, tmp_path: Path):
    agent = FrameworkAgent(Pupil())
    fixture = HostFixture(lambda: hosted(agent), AgentSettings(runner="python"), tmp_path)
    try:
        await check(fixture)
    finally:
        await fixture.host.close()


class AgentFrameworkTaskSite:
    silence, fixed_tools, has_cost = 0.5, False, False

    def __init__(self) -> None:
        self.work = Work()
        self._client = ScriptedClient()
        self.requests = self._client.requests

    def agent(self, *steps: Any) -> Any:
        self._client.steps = list(steps)
        deploy = tool(self.work.deploy, approval_mode="always_require")
        return FrameworkAgent(self._client, tools=[tool(self.work.look), tool(self.work.dig), deploy])

    def pupil(self) -> Any:
        return FrameworkAgent(Pupil())

    def named(self, tool: str) -> str:
        return tool


@pytest.mark.parametrize("check", TASK_CHECKS, ids=lambda check: check.__name__)
async def test_as_a_task(check: TaskCheck, tmp_path: Path):
    await check(Fixture(AgentFrameworkTaskSite(), tmp_path))


def scripted(*steps: Any, tools: tuple[Any, ...] = ()) -> FrameworkAgent[Any]:
    client = ScriptedClient()
    client.steps = list(steps)
    return FrameworkAgent(client, tools=list(tools))


async def test_a_bug_of_the_agent_fails_the_task_with_its_trace(tmp_path: Path):
    agent = scripted(ValueError("a bug"))
    async with Meantime.open(tmp_path / "work.db", agents={"buggy": agent}) as mt:
        task = await mt.thread("t").start(Agent("buggy", "go"))
        (ended,) = await mt.thread("t").wait(task)
        assert ended.status is Status.FAILED
        assert "a bug" in str(ended.outcome)
        assert "Traceback" in str(ended.outcome)


async def test_deps_are_the_arguments_that_its_functions_are_given(tmp_path: Path):
    @tool
    def whoami(ctx: FunctionInvocationContext) -> str:
        """Says who asks."""
        return ctx.kwargs["user"]

    agent = PythonAgent(scripted(ToolCall("whoami", {}), "ok", tools=(whoami,)), deps={"user": "ann"})
    async with Meantime.open(tmp_path / "work.db", agents={"x": agent}) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("x", "go"))
        await task.result()
        assert [line.text for line in await thread.lines(task) if line.kind is Kind.RESULT] == ["ann"]
