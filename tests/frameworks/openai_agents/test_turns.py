"""An agent of the OpenAI Agents SDK as a background task."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from agents.testing import ModelStep, ScriptedModel
from openai import AsyncOpenAI
from task_suite import TASK_CHECKS, Fixture, Work, hosted
from task_suite import Check as TaskCheck

from agents import Agent as OpenAIAgent
from agents import RunContextWrapper, function_tool, set_default_openai_client
from meantime import Agent, Meantime, Status
from meantime.ports.session import AgentSettings
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture

from . import openai_site
from .pupil import Pupil

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", SESSION_HOST_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_contract_of_session_hosts(check: Check, tmp_path: Path):
    agent = OpenAIAgent("pupil", model=Pupil())
    fixture = HostFixture(lambda: hosted(agent), AgentSettings(runner="python"), tmp_path)
    try:
        await check(fixture)
    finally:
        await fixture.host.close()


class OpenAITaskSite:
    framework = "OpenAI Agents SDK"

    def __init__(self) -> None:
        self.work = Work()
        self.models: list[str] = []
        transport = httpx.MockTransport(self._refused)
        client = AsyncOpenAI(api_key="-", max_retries=0, http_client=httpx.AsyncClient(transport=transport))
        set_default_openai_client(client, use_for_tracing=False)
        self._model = openai_site.ScriptedModel()
        self.requests = self._model.requests

    def agent(self, *steps: Any) -> Any:
        self._model.steps = list(steps)
        deploy = function_tool(self.work.deploy, needs_approval=True)
        tools = [function_tool(self.work.look), function_tool(self.work.dig), deploy]
        return OpenAIAgent("scripted", model=self._model, tools=list(tools))

    def _refused(self, request: httpx.Request) -> httpx.Response:
        """The service of a model that is not the agent's own: only its name matters."""
        self.models.append(json.loads(request.content)["model"])
        return httpx.Response(400, json={"error": {"message": "no such model"}})

    def asker(self, *steps: Any) -> Any:
        def whoami(context: RunContextWrapper[Any]) -> str:
            """Says who asks."""
            return context.context["user"]

        self._model.steps = list(steps)
        return OpenAIAgent("scripted", model=self._model, tools=[function_tool(whoami)])

    def pupil(self) -> Any:
        return OpenAIAgent("pupil", model=Pupil())

    def named(self, tool: str) -> str:
        return tool


@pytest.mark.parametrize("check", TASK_CHECKS, ids=lambda check: check.__name__)
async def test_as_a_task(check: TaskCheck, tmp_path: Path):
    await check(Fixture(OpenAITaskSite(), tmp_path))


async def test_a_bug_of_the_agent_fails_the_task_with_its_trace(tmp_path: Path):
    agent = OpenAIAgent("x", model=ScriptedModel([ModelStep.raise_error(ValueError("a bug"))]))
    async with Meantime.open(tmp_path / "work.db", agents={"buggy": agent}) as mt:
        task = await mt.thread("t").start(Agent("buggy", "go"))
        (ended,) = await mt.thread("t").wait(task)
        assert ended.status is Status.FAILED
        assert "a bug" in str(ended.outcome)
        assert "Traceback" in str(ended.outcome)
