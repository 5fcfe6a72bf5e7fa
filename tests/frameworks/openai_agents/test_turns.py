"""An agent of the OpenAI Agents SDK as a background task."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from agents import Agent as OpenAIAgent
from agents import function_tool
from meantime import Agent, Meantime, PythonAgent, Status
from meantime.app.system_clock import SystemClock
from meantime.integrations.loops.session_host import PythonSessionHost
from meantime.kernel.lines import Kind
from meantime.ports.session import AgentSettings
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture

from .pupil import Pupil

pytestmark = pytest.mark.anyio


def hosted(agent: OpenAIAgent[Any]) -> PythonSessionHost:
    host = PythonSessionHost(SystemClock())
    host.add("agent", agent)
    return host


@pytest.mark.parametrize("check", SESSION_HOST_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_contract_of_session_hosts(check: Check, tmp_path: Path):
    agent = OpenAIAgent("pupil", model=Pupil())
    fixture = HostFixture(lambda: hosted(agent), AgentSettings(runner="python"), tmp_path)
    try:
        await check(fixture)
    finally:
        await fixture.host.close()


@function_tool
def look(at: str) -> str:
    """Looks at something."""
    return f"{at} is fine"


def scripted(*outputs: Any, tools: tuple[Any, ...] = (look,)) -> OpenAIAgent[Any]:
    return OpenAIAgent("scripted", model=ScriptedModel(list(outputs)), tools=list(tools))


async def test_its_tool_calls_and_words_are_lines_of_the_task(tmp_path: Path):
    agent = scripted([function_call("look", {"at": "x"}, call_id="c1")], [assistant_message("all is well")])
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
    agent = OpenAIAgent("pupil", model=Pupil())
    async with Meantime.open(tmp_path / "work.db", agents={"pupil": agent}) as mt:
        first = await mt.thread("t").start(Agent("pupil", "say one"))
        assert await first.result() == "one"
    async with Meantime.open(tmp_path / "work.db", agents={"pupil": agent}) as mt:
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


@pytest.mark.parametrize(("answer", "told"), [("allow", "deployed to prod"), ("deny", "not allowed")])
async def test_a_tool_that_needs_approval_makes_the_task_wait_for_it(tmp_path: Path, answer: str, told: str):
    @function_tool(needs_approval=True)
    def deploy(to: str) -> str:
        """Deploys."""
        return f"deployed to {to}"

    call = function_call("deploy", {"to": "prod"}, call_id="c1")
    agent = scripted([call], [assistant_message("done")], tools=(deploy,))
    async with Meantime.open(tmp_path / "work.db", agents={"ops": agent}) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("ops", "deploy it"))
        assert "deploy" in await until_waiting(mt, task.id)
        await mt.answer(task.id, answer)
        assert await task.result() == "done"
        results = [line.text for line in await thread.lines(task) if line.kind is Kind.RESULT]
        assert [told in text for text in results] == [True], results


async def test_a_bug_of_the_agent_fails_the_task_with_its_trace(tmp_path: Path):
    agent = scripted(ModelStep.raise_error(ValueError("a bug")))
    async with Meantime.open(tmp_path / "work.db", agents={"buggy": agent}) as mt:
        task = await mt.thread("t").start(Agent("buggy", "go"))
        (ended,) = await mt.thread("t").wait(task)
        assert ended.status is Status.FAILED
        assert "a bug" in str(ended.outcome)
        assert "Traceback" in str(ended.outcome)


async def test_settings_restrict_its_tools(tmp_path: Path):
    model = ScriptedModel([[assistant_message("ok")]])
    agent = PythonAgent(OpenAIAgent("x", model=model, tools=[look]), tools=())
    async with Meantime.open(tmp_path / "work.db", agents={"x": agent}) as mt:
        await (await mt.thread("t").start(Agent("x", "go"))).result()
        assert model.calls[0].tools == []
