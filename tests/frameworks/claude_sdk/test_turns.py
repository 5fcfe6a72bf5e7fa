"""A Claude agent as a background task."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import create_sdk_mcp_server, tool

from meantime import Agent, Meantime, PythonAgent, Status
from meantime.app.system_clock import SystemClock
from meantime.integrations.loops.session_host import PythonSessionHost
from meantime.kernel.lines import Kind
from meantime.ports.session import AgentSettings
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture
from meantime.testing.talk import ToolCall

from .claude_site import options_for
from .pupil import Pupil
from .scripted_api import ScriptedAPI

pytestmark = [
    pytest.mark.anyio,
    # The SDK says that tools which are allowed anyway are not asked for.
    pytest.mark.filterwarnings("ignore::claude_agent_sdk.CanUseToolShadowedWarning"),
]


@pytest.fixture
def pupil() -> Iterator[Pupil]:
    made = Pupil()
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("check", SESSION_HOST_CHECKS, ids=lambda check: check.__name__)
async def test_it_keeps_the_contract_of_session_hosts(check: Check, tmp_path: Path, pupil: Pupil):
    def hosted() -> PythonSessionHost:
        host = PythonSessionHost(SystemClock())
        host.add("agent", options_for(tmp_path, pupil.url))
        return host

    fixture = HostFixture(hosted, AgentSettings(runner="python"), tmp_path, middle=pupil.middle)
    try:
        await check(fixture)
    finally:
        await fixture.host.close()


@tool("look", "Looks at something.", {"at": str})
async def look(given: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": f"{given['at']} is fine"}]}


def looking(folder: Path, api: ScriptedAPI, **more: Any) -> Any:
    servers = {"meantime": create_sdk_mcp_server("meantime", tools=[look])}
    return options_for(folder, api.url, mcp_servers=servers, **more)


async def test_its_tool_calls_and_words_are_lines_and_its_tokens_and_cost_count(
    tmp_path: Path, api: ScriptedAPI
):
    api.steps = [ToolCall("look", {"at": "x"}), "all is well", "still"]
    agent = looking(tmp_path, api, allowed_tools=["mcp__meantime"])
    async with Meantime.open(tmp_path / "work.db", agents={"explore": agent}) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("explore", "look around"))
        assert await task.result(60) == "all is well"
        lines = [(line.role, line.kind, line.tool, line.text) for line in await thread.lines(task)]
        assert lines == [
            ("user", Kind.TEXT, "", "look around"),
            ("assistant", Kind.CALL, "mcp__meantime__look", ""),
            ("tool", Kind.RESULT, "mcp__meantime__look", "x is fine"),
            ("assistant", Kind.TEXT, "", "all is well"),
        ]
        first = (await task.get()).progress
        assert first is not None
        assert first.turns == 2
        assert first.tokens > 0
        assert first.cost > 0
        again = await thread.resume(task.id, "and now?")
        assert await again.result(60) == "still"
        second = (await again.get()).progress
        assert second is not None
        assert second.cost < first.cost, "what the first run cost is not counted again"


async def until_waiting(mt: Meantime, id: str) -> str:
    async with asyncio.timeout(30):
        while (task := await mt.get(id)).question is None:
            assert not task.ended, task.outcome
            await asyncio.sleep(0.01)
    return task.question.text


@pytest.mark.parametrize(("answer", "told"), [("allow", "x is fine"), ("deny", "not allowed")])
async def test_a_tool_that_is_not_allowed_makes_the_task_wait_for_an_answer(
    tmp_path: Path, api: ScriptedAPI, answer: str, told: str
):
    api.steps = [ToolCall("look", {"at": "x"}), "done"]
    async with Meantime.open(tmp_path / "work.db", agents={"ops": looking(tmp_path, api)}) as mt:
        thread = mt.thread("t")
        task = await thread.start(Agent("ops", "look"))
        assert "mcp__meantime__look" in await until_waiting(mt, task.id)
        await mt.answer(task.id, answer)
        assert await task.result(60) == "done"
        results = [line.text for line in await thread.lines(task) if line.kind is Kind.RESULT]
        assert [told in text for text in results] == [True], results


async def test_a_fork_is_a_copy_of_what_was_said_by_then(tmp_path: Path, pupil: Pupil):
    agents = {"pupil": options_for(tmp_path, pupil.url)}
    async with Meantime.open(tmp_path / "work.db", agents=agents) as mt:
        first = await mt.thread("t").start(Agent("pupil", "say one"))
        assert await first.result(60) == "one"
    async with Meantime.open(tmp_path / "work.db", agents=agents) as mt:
        fork = await mt.thread("t").fork(first.id, "recall")
        assert await fork.result(60) == "one"
        again = await mt.thread("t").resume(first.id, "recall")
        assert await again.result(60) == "one"


async def test_an_error_of_the_provider_fails_the_task(tmp_path: Path, api: ScriptedAPI):
    api.steps = [ConnectionError("no such plan")]
    agents = {"x": options_for(tmp_path, api.url)}
    async with Meantime.open(tmp_path / "work.db", agents=agents) as mt:
        task = await mt.thread("t").start(Agent("x", "go"))
        (ended,) = await mt.thread("t").wait(task, timeout=90)
        assert ended.status is Status.FAILED
        assert "no such plan" in str(ended.outcome)


async def test_settings_restrict_its_tools(tmp_path: Path, api: ScriptedAPI):
    api.steps = ["ok"]
    agent = PythonAgent(looking(tmp_path, api), tools=())
    async with Meantime.open(tmp_path / "work.db", agents={"x": agent}) as mt:
        await (await mt.thread("t").start(Agent("x", "go"))).result(60)
        assert "look" not in api.requests[0].tools
