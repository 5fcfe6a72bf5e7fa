"""An agent of the ADK as a background task."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from meantime import Agent, Meantime, PythonAgent, Status
from meantime.app.system_clock import SystemClock
from meantime.integrations.loops.session_host import PythonSessionHost
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


def hosted(agent: Any) -> PythonSessionHost:
    host = PythonSessionHost(SystemClock())
    host.add("agent", agent)
    return host


@pytest.mark.parametrize("check", SESSION_HOST_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_contract_of_session_hosts(check: Check, tmp_path: Path):
    fixture = HostFixture(lambda: hosted(pupil()), AgentSettings(runner="python"), tmp_path)
    try:
        await check(fixture)
    finally:
        await fixture.host.close()


def look(at: str) -> str:
    """Looks at something."""
    return f"{at} is fine"


def scripted(*steps: Any, tools: tuple[Any, ...] = (look,)) -> LlmAgent:
    model = ScriptedModel(model="scripted")
    model._steps += steps
    return LlmAgent(name="scripted", model=model, tools=list(tools))


async def test_its_tool_calls_and_words_are_lines_of_the_task(tmp_path: Path):
    agent = scripted(ToolCall("look", {"at": "x"}), "all is well")
    async with Meantime.open(tmp_path / "work.db", agents={"explore": agent}) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("explore", "look around"))
        assert await task.result() == "all is well"
        lines = [(line.role, line.kind, line.tool, line.text) for line in await thread.lines(task)]
        assert lines == [
            ("user", Kind.TEXT, "", "look around"),
            ("assistant", Kind.CALL, "look", ""),
            ("tool", Kind.RESULT, "look", "x is fine"),
            ("assistant", Kind.TEXT, "", "all is well"),
        ]


async def test_a_resume_and_a_fork_go_on_with_all_that_was_said(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db", agents={"pupil": pupil()}) as mt:
        first = await mt.thread("t").start(Agent("pupil", "say one"))
        assert await first.result() == "one"
    async with Meantime.open(tmp_path / "work.db", agents={"pupil": pupil()}) as mt:
        again = await mt.thread("t").resume(first.id, "say two")
        assert await again.result() == "two"
        fork = await mt.thread("t").fork(first.id, "recall")
        assert await fork.result() == "one two"


async def until_waiting(mt: Meantime, id: str) -> str:
    async with asyncio.timeout(20):
        while (task := await mt.get(id)).question is None:
            assert not task.ended, task.outcome
            await asyncio.sleep(0.01)
    return task.question.text


def deploy(to: str) -> str:
    """Deploys."""
    return f"deployed to {to}"


@pytest.mark.parametrize(("answer", "told"), [("allow", "deployed to prod"), ("deny", "rejected")])
@pytest.mark.parametrize("restarted", [False, True])
async def test_a_tool_that_needs_a_confirmation_makes_the_task_wait_for_it(
    tmp_path: Path, answer: str, told: str, restarted: bool
):
    tool = FunctionTool(deploy, require_confirmation=True)
    agent = scripted(ToolCall("deploy", {"to": "prod"}), "done", tools=(tool,))
    async with Meantime.open(tmp_path / "work.db", agents={"ops": agent}) as mt:
        task = await mt.thread("t").start(Agent("ops", "deploy it"))
        assert "deploy" in await until_waiting(mt, task.id)
        if not restarted:
            await mt.answer(task.id, answer)
            assert await task.result() == "done"
    async with Meantime.open(tmp_path / "work.db", agents={"ops": agent}) as mt:
        if restarted:
            await mt.answer(task.id, answer)
            await mt.thread("t").wait(task.id)
        lines = await mt.thread("t").lines(task.id)
        results = [line.text for line in lines if line.kind is Kind.RESULT]
        assert [told in text for text in results] == [True], results
        assert lines[-1].text == "done"


async def test_what_is_said_in_the_middle_is_read_with_the_next_request(tmp_path: Path):
    going, go = asyncio.Event(), asyncio.Event()

    async def dig() -> str:
        """Digs."""
        going.set()
        await go.wait()
        return "dug"

    agent = scripted(ToolCall("dig", {}), "done, and hurried", tools=(dig,))
    async with Meantime.open(tmp_path / "work.db", agents={"digger": agent}) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("digger", "dig"))
        async with asyncio.timeout(20):
            await going.wait()
        await thread.send(task, "hurry")
        go.set()
        assert await task.result() == "done, and hurried"
        asked: Any = agent.model
        assert asked._requests[1].prompts[-1] == "hurry"


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
