"""An agent of the ADK as a background task."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LLMRegistry
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools import FunctionTool, ToolContext
from google.genai.types import Content, Part
from task_suite import TASK_CHECKS, Fixture, Work, hosted, question_of
from task_suite import Check as TaskCheck

from meantime import Agent, Meantime, PythonAgent, Status
from meantime.kernel.budgets import Budget
from meantime.kernel.lines import Kind
from meantime.ports.session import AgentSettings
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture
from meantime.testing.talk import ToolCall

from .adk_site import ScriptedModel
from .pupil import Pupil

pytestmark = pytest.mark.anyio


def pupil() -> LlmAgent:
    return LlmAgent(name="pupil", model=Pupil(model="pupil"))


@pytest.mark.parametrize("check", SESSION_HOST_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_contract_of_session_hosts(check: Check, tmp_path: Path):
    fixture = HostFixture(lambda: hosted(pupil()), AgentSettings(runner="python"), tmp_path)
    try:
        await check(fixture)
    finally:
        await fixture.host.close()


class NamedModel(BaseLlm):
    """A model that the ADK finds by its name, as it finds Google's."""

    asked: ClassVar[list[str]] = []

    @classmethod
    def supported_models(cls) -> list[str]:
        return ["another"]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        self.asked.append(self.model)
        yield LlmResponse(content=Content(role="model", parts=[Part(text="ok")]))


LLMRegistry.register(NamedModel)


class AdkTaskSite:
    framework = "Google's ADK"

    def __init__(self) -> None:
        self.work = Work()
        NamedModel.asked.clear()
        self.models = NamedModel.asked
        self._model = ScriptedModel(model="scripted")
        self.requests = self._model._requests

    def agent(self, *steps: Any) -> Any:
        self._model._steps[:] = steps
        deploy = FunctionTool(self.work.deploy, require_confirmation=True)
        tools = [self.work.look, self.work.dig, deploy]
        return LlmAgent(name="scripted", model=self._model, tools=list(tools))

    def asker(self, *steps: Any) -> Any:
        def whoami(tool_context: ToolContext) -> str:
            """Says who asks."""
            return tool_context.state["user"]

        self._model._steps[:] = steps
        return LlmAgent(name="scripted", model=self._model, tools=[whoami])

    def pupil(self) -> Any:
        return pupil()

    def named(self, tool: str) -> str:
        return tool


@pytest.mark.parametrize("check", TASK_CHECKS, ids=lambda check: check.__name__)
async def test_as_a_task(check: TaskCheck, tmp_path: Path):
    await check(Fixture(AdkTaskSite(), tmp_path))


def look(at: str) -> str:
    """Looks at something."""
    return f"{at} is fine"


def scripted(*steps: Any, tools: tuple[Any, ...] = (look,)) -> LlmAgent:
    model = ScriptedModel(model="scripted")
    model._steps += steps
    return LlmAgent(name="scripted", model=model, tools=list(tools))


def deploy(to: str) -> str:
    """Deploys."""
    return f"deployed to {to}"


@pytest.mark.parametrize(("answer", "told"), [("allow", "deployed to prod"), ("deny", "rejected")])
async def test_an_answer_to_a_question_from_before_a_restart_is_heard(tmp_path: Path, answer: str, told: str):
    tool = FunctionTool(deploy, require_confirmation=True)
    agent = scripted(ToolCall("deploy", {"to": "prod"}), "done", tools=(tool,))
    async with Meantime.open(tmp_path / "work.db", agents={"ops": agent}) as mt:
        task = await mt.thread("t").start(Agent("ops", "deploy it"))
        assert "deploy" in (await question_of(mt, task.id)).text
    async with Meantime.open(tmp_path / "work.db", agents={"ops": agent}) as mt:
        await mt.answer(task.id, answer)
        await mt.thread("t").wait(task.id)
        lines = await mt.thread("t").lines(task.id)
        results = [line.text for line in lines if line.kind is Kind.RESULT]
        assert [told in text for text in results] == [True], results
        assert lines[-1].text == "done"


async def test_a_budget_ends_it_with_a_last_turn_without_tools(tmp_path: Path):
    calls = [ToolCall("look", {"at": str(n)}, f"c{n}") for n in range(2)]
    agent = scripted(*calls, "so far: fine")
    given = PythonAgent(agent, budget=Budget(tool_calls=2))
    async with Meantime.open(tmp_path / "work.db", agents={"busy": given}) as mt:
        task = await mt.thread("t").start(Agent("busy", "look and look"))
        (ended,) = await mt.thread("t").wait(task)
        assert "tool calls" in str(ended.outcome)
        assert "so far: fine" in str(ended.outcome)
        asked: Any = agent.model
        assert asked._requests[0].tools == ["look"]
        assert asked._requests[-1].tools == []


async def test_a_bug_of_the_agent_fails_the_task_with_its_trace(tmp_path: Path):
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
