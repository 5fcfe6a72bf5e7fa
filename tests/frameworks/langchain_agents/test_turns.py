"""An agent of LangChain or deepagents as a background task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langgraph.types import interrupt

from meantime import Agent, Meantime, PythonAgent, Status
from meantime.app.system_clock import SystemClock
from meantime.integrations.loops.session_host import PythonSessionHost
from meantime.kernel.budgets import Budget
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lines import Kind
from meantime.ports.session import AgentSettings
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture
from meantime.testing.talk import ToolCall

from .langchain_site import ScriptedModel
from .pupil import Pupil

pytestmark = pytest.mark.anyio


def hosted(agent: Any) -> PythonSessionHost:
    host = PythonSessionHost(SystemClock())
    host.add("agent", agent)
    return host


@pytest.mark.parametrize("check", SESSION_HOST_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_contract_of_session_hosts(check: Check, tmp_path: Path):
    agent = create_agent(Pupil())
    fixture = HostFixture(lambda: hosted(agent), AgentSettings(runner="python"), tmp_path)
    try:
        await check(fixture)
    finally:
        await fixture.host.close()


@tool
def look(at: str) -> str:
    """Looks at something."""
    return f"{at} is fine"


def scripted(*steps: Any, tools: tuple[Any, ...] = (look,), **options: Any) -> Any:
    model = ScriptedModel()
    model._steps += steps
    return create_agent(model, list(tools), **options)


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


@pytest.mark.parametrize("create", [create_agent, create_deep_agent])
async def test_a_resume_and_a_fork_go_on_with_all_that_was_said(tmp_path: Path, create: Callable[..., Any]):
    agent = create(Pupil())
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


@tool
def deploy(to: str) -> str:
    """Deploys."""
    return f"deployed to {to}"


@pytest.mark.parametrize(("answer", "told"), [("allow", "deployed to prod"), ("deny", "not allowed")])
async def test_a_call_that_needs_a_review_makes_the_task_wait_for_it(tmp_path: Path, answer: str, told: str):
    review = HumanInTheLoopMiddleware(interrupt_on={"deploy": True})
    agent = scripted(ToolCall("deploy", {"to": "prod"}), "done", tools=(deploy,), middleware=[review])
    async with Meantime.open(tmp_path / "work.db", agents={"ops": agent}) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("ops", "deploy it"))
        assert "deploy" in await until_waiting(mt, task.id)
        await mt.answer(task.id, answer)
        assert await task.result() == "done"
        results = [line.text for line in await thread.lines(task) if line.kind is Kind.RESULT]
        assert [told in text for text in results] == [True], results


async def test_an_interrupt_of_its_own_is_a_question_that_outlives_a_restart(tmp_path: Path):
    @tool
    def ask(what: str) -> str:
        """Asks a person."""
        return f"they said {interrupt({'question': what})}"

    agent = scripted(ToolCall("ask", {"what": "which colour?"}), "blue it is", tools=(ask,))
    async with Meantime.open(tmp_path / "work.db", agents={"ops": agent}) as mt:
        task = await mt.thread("t").start(Agent("ops", "paint it"))
        assert await until_waiting(mt, task.id) == "which colour?"
    async with Meantime.open(tmp_path / "work.db", agents={"ops": agent}) as mt:
        await mt.answer(task.id, "blue")
        (ended,) = await mt.thread("t").wait(task.id)
        assert "blue it is" in str(ended.outcome)
        results = [line.text for line in await mt.thread("t").lines(task.id) if line.kind is Kind.RESULT]
        assert results == ["they said blue"]


async def test_what_is_said_in_the_middle_is_read_with_the_next_request(tmp_path: Path):
    going, go = asyncio.Event(), asyncio.Event()

    @tool
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
        said = [line.text for line in await thread.lines(task) if line.role in ("user", "tool")]
        assert sorted(said) == ["dig", "dug", "hurry"]


async def test_a_budget_of_tool_calls_ends_it(tmp_path: Path):
    agent = scripted(*[ToolCall("look", {"at": str(n)}, f"c{n}") for n in range(50)], "never")
    given = PythonAgent(agent, budget=Budget(tool_calls=3))
    async with Meantime.open(tmp_path / "work.db", agents={"busy": given}) as mt:
        task = await mt.thread("t").start(Agent("busy", "look and look"))
        (ended,) = await mt.thread("t").wait(task)
        calls = [line for line in await mt.thread("t").lines(task) if line.kind is Kind.CALL]
        assert "tool calls" in str(ended.outcome)
        assert len(calls) <= 4, "it went on"


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


async def test_settings_that_a_graph_has_fixed_are_refused(tmp_path: Path):
    agent = PythonAgent(create_agent(Pupil()), tools=("look",))
    with pytest.raises(InvalidInput, match="fixed when the agent is made"):
        async with Meantime.open(tmp_path / "work.db", agents={"x": agent}) as mt:
            await mt.thread("t").start(Agent("x", "go"))


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
