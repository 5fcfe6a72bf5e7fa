"""A Claude agent as a background task."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import SdkMcpTool, create_sdk_mcp_server, tool
from task_suite import TASK_CHECKS, Fixture, Work, hosted
from task_suite import Check as TaskCheck
from tests.waiting import LIMIT

from meantime import Agent, Meantime
from meantime.ports.session import AgentSettings
from meantime.testing.session_host import SESSION_HOST_CHECKS, Check, HostFixture

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
    fixture = HostFixture(
        lambda: hosted(options_for(tmp_path, pupil.url)),
        AgentSettings(runner="python"),
        tmp_path,
        middle=pupil.middle,
    )
    try:
        await check(fixture)
    finally:
        await fixture.host.close()


class ClaudeTaskSite:
    framework = "Claude Agent SDK"

    def __init__(self, folder: Path, api: ScriptedAPI, pupil: Pupil) -> None:
        self.work = Work()
        self._folder, self._api, self._pupil = folder, api, pupil
        self.requests, self.models = api.requests, api.models

    def agent(self, *steps: Any) -> Any:
        self._api.steps[:] = steps
        tools = [claude_tool(one) for one in (self.work.look, self.work.dig, self.work.deploy)]
        return options_for(
            self._folder,
            self._api.url,
            mcp_servers={"meantime": create_sdk_mcp_server("meantime", tools=tools)},
            allowed_tools=[self.named("look"), self.named("dig")],
        )

    def asker(self, *steps: Any) -> Any:
        raise NotImplementedError("a Claude agent takes no deps")

    def pupil(self) -> Any:
        return options_for(self._folder, self._pupil.url)

    def named(self, tool: str) -> str:
        return f"mcp__meantime__{tool}"


def claude_tool(function: Callable[..., Any]) -> SdkMcpTool[Any]:
    parameters = dict.fromkeys(inspect.signature(function).parameters, str)

    @tool(function.__name__, function.__doc__ or "", parameters)
    async def called(given: dict[str, Any]) -> dict[str, Any]:
        made = function(**given)
        text = await made if inspect.isawaitable(made) else made
        return {"content": [{"type": "text", "text": text}]}

    return called


@pytest.mark.parametrize("check", TASK_CHECKS, ids=lambda check: check.__name__)
async def test_as_a_task(check: TaskCheck, tmp_path: Path, api: ScriptedAPI, pupil: Pupil):
    await check(Fixture(ClaudeTaskSite(tmp_path, api, pupil), tmp_path))


async def test_its_cost_counts_and_a_resume_does_not_count_it_again(tmp_path: Path, api: ScriptedAPI):
    api.steps = ["all is well", "still"]
    agents = {"explore": options_for(tmp_path, api.url)}
    async with Meantime.open(tmp_path / "work.db", agents=agents) as mt:
        task = await mt.thread("t").start(Agent("explore", "look around"))
        assert await task.result(LIMIT) == "all is well"
        first = (await task.get()).progress
        again = await mt.thread("t").resume(task.id, "and now?")
        assert await again.result(LIMIT) == "still"
        second = (await again.get()).progress
        assert first is not None
        assert second is not None
        assert 0 < second.cost <= first.cost * 1.5, "what the first run cost is not counted again"
