"""An agent of agent-framework as a background task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent as FrameworkAgent
from agent_framework import FunctionInvocationContext, tool
from task_suite import TASK_CHECKS, Fixture, Work, hosted
from task_suite import Check as TaskCheck

from meantime import Agent, Meantime, Status
from meantime.ports.session import AgentSettings
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture

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
    framework = "agent-framework (Microsoft)"

    def __init__(self) -> None:
        self.work = Work()
        self._client = ScriptedClient()
        self.requests, self.models = self._client.requests, self._client.models

    def agent(self, *steps: Any) -> Any:
        self._client.steps = list(steps)
        deploy = tool(self.work.deploy, approval_mode="always_require")
        return FrameworkAgent(self._client, tools=[tool(self.work.look), tool(self.work.dig), deploy])

    def asker(self, *steps: Any) -> Any:
        @tool
        def whoami(ctx: FunctionInvocationContext) -> str:
            """Says who asks."""
            return ctx.kwargs["user"]

        self._client.steps = list(steps)
        return FrameworkAgent(self._client, tools=[whoami])

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
