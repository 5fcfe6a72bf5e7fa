"""A Pydantic AI agent that talks: it hands work off, goes on, is told once and in order, and is woken."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import Tool, ToolDefinition
from pydantic_ai.toolsets import CombinedToolset
from tests.waiting import LIMIT, until_async

from meantime import Call, InvalidInput, Meantime, Shell, background
from meantime.integrations.pydantic_ai import Talk, tools
from meantime.ports.store import Settled
from meantime.testing import FakeClock

from .scripted import Script, call

pytestmark = pytest.mark.anyio
GATES: dict[str, asyncio.Event] = {}


@background
async def crawl(site: str) -> str:
    """Crawls a site."""
    gate = GATES.get(site)
    if gate is not None:
        await gate.wait()
    return f"{site} has 3 pages"


@pytest.fixture(autouse=True)
def _no_gates():
    GATES.clear()


def notices(prompts: list[str]) -> list[str]:
    return [prompt for prompt in prompts if prompt.startswith("<task-notification")]


def plain(site: str) -> str:
    return site


async def test_what_it_is_handed_wrongly_it_says_at_once(ledger: str):
    agent = PydanticAgent(TestModel())
    async with Meantime.open(ledger) as mt:
        thread = mt.thread("t")
        with pytest.raises(InvalidInput, match=r"Put @background \(from meantime\) above it"):
            Talk(agent, thread, plain)  # pyright: ignore[reportArgumentType]
        assert Talk(agent, thread, background(plain))
        with pytest.raises(InvalidInput, match="5 is not a function that can be handed off"):
            tools(thread, 5)  # pyright: ignore[reportArgumentType]
        wrong: Any
        for wrong in ("t", mt):
            with pytest.raises(InvalidInput, match="is not a thread"):
                Talk(agent, wrong)
        for wrong in ("openai:gpt-x", PydanticAgent):
            with pytest.raises(InvalidInput, match="is not an agent of Pydantic AI"):
                Talk(wrong, thread)


async def test_a_quick_function_answers_at_once(ledger: str):
    script = Script(call("crawl", site="a.org"), "3 pages")
    async with Meantime.open(ledger) as mt:
        talk = Talk(PydanticAgent(script.model), mt.thread("t"), crawl, threshold=LIMIT)
        assert await talk.say("how big is a.org?") == "3 pages"
        assert script.asked[1].results == ["a.org has 3 pages"]
        assert await mt.list() == []


async def test_a_slow_one_goes_on_and_the_agent_is_woken_once(ledger: str):
    GATES["a.org"] = asyncio.Event()
    script = Script(call("crawl", site="a.org"), "it takes a while", "3 pages", "as I said: 3")
    async with Meantime.open(ledger) as mt:
        talk = Talk(PydanticAgent(script.model), mt.thread("t"), crawl, threshold=0.01)
        assert await talk.say("how big is a.org?") == "it takes a while"
        assert "goes on in the background as task t_" in script.asked[1].results[0]
        GATES["a.org"].set()
        async for said in talk.woken():
            assert said == "3 pages"
            break
        assert len(notices(script.asked[2].prompts)) == 1
        assert "a.org has 3 pages" in notices(script.asked[2].prompts)[0]
        assert await talk.say("sorry?") == "as I said: 3"
        assert len(notices(script.asked[3].prompts)) == 1
        assert await mt.notices() == []


async def test_what_ended_in_the_middle_of_a_turn_is_told_with_the_next_request(ledger: str):
    script = Script(call("work_a_little"), "I see")
    agent = PydanticAgent(script.model)

    @agent.tool_plain
    async def work_a_little() -> str:
        handle = await thread.start(Call(crawl, "b.org"))
        await thread.wait(handle)
        return "worked"

    async with Meantime.open(ledger) as mt:
        thread = mt.thread("t")
        assert await Talk(agent, thread).say("work") == "I see"
        assert len(notices(script.asked[1].prompts)) == 1
        assert await mt.notices() == []


async def test_every_turn_has_a_reminder_of_what_runs(ledger: str):
    GATES["a.org"] = asyncio.Event()
    script = Script("nothing", "something")
    async with Meantime.open(ledger) as mt:
        thread = mt.thread("t")
        talk = Talk(PydanticAgent(script.model), thread)
        await talk.say("what runs?")
        await thread.start(Call(crawl, "a.org"), description="crawl a.org")
        await talk.say("and now?")
        assert "crawl a.org" not in (script.asked[0].instructions or "")
        assert "crawl a.org" in str(script.asked[1].instructions)
        GATES["a.org"].set()


async def test_notices_come_in_the_order_of_completion_and_before_the_prompt(ledger: str):
    script = Script("ok")
    async with Meantime.open(ledger) as mt:
        thread = mt.thread("t")
        for site in ("b.org", "a.org"):
            await thread.wait(await thread.start(Call(crawl, site)))
        await Talk(PydanticAgent(script.model), thread).say("hello")
        first, second, prompt = script.asked[0].prompts
        assert "b.org" in first
        assert "a.org" in second
        assert prompt == "hello"


async def test_what_the_agent_read_itself_is_not_told_again(ledger: str):
    GATES["a.org"] = asyncio.Event()
    script = Script()
    async with Meantime.open(ledger, clock=FakeClock()) as mt:
        thread = mt.thread("t")
        task = await thread.start(Call(crawl, "a.org"))
        script.steps = [call("wait", ids=[task.id], seconds=50), "3 pages"]
        talking = asyncio.ensure_future(Talk(PydanticAgent(script.model), thread).say("wait for it"))
        await until_async(lambda: script.asked, "the model is asked")
        GATES["a.org"].set()
        assert await talking == "3 pages"
        assert "a.org has 3 pages" in script.asked[1].results[0]
        assert notices(script.asked[1].prompts) == []
        assert await mt.notices() == []


@pytest.mark.behaviour("N2")
async def test_a_turn_that_fails_gives_back_and_what_was_held_is_not_added_twice(ledger: str):
    script = Script(ModelHTTPError(400, "m"), "3 pages")
    async with Meantime.open(ledger) as mt:
        thread = mt.thread("t")
        await thread.wait(await thread.start(Call(crawl, "a.org")))
        talk = Talk(PydanticAgent(script.model), thread)
        with pytest.raises(ModelHTTPError):
            await talk.say()
        assert len(await mt.notices()) == 1
        assert await talk.say() == "3 pages"
        assert len(notices(script.asked[1].prompts)) == 1
        assert await mt.notices() == []


@pytest.mark.behaviour("N4")
async def test_a_restart_between_the_file_and_the_ack_tells_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Class B: the messages are looked into before anything is added."""
    script = Script("3 pages", "as I said")
    agent = PydanticAgent(script.model)
    ledger, file = tmp_path / "work.db", tmp_path / "talk.messages"
    async with Meantime.open(ledger) as mt:
        thread = mt.thread("t")
        await thread.wait(await thread.start(Call(crawl, "a.org")))
        talk = Talk(agent, thread, history=file)

        async def killed(turn: object) -> Settled:
            raise ConnectionError("just before the ack")

        monkeypatch.setattr(talk, "_settle", killed)
        with pytest.raises(ConnectionError):
            await talk.say()
    async with Meantime.open(ledger) as mt:
        assert len(await mt.notices()) == 1
        talk = Talk(agent, mt.thread("t"), history=file)
        assert await talk.say() is None, "it was told, and answered; only the ack was missing"
        assert await mt.notices() == []
        assert await talk.say("sorry?") == "as I said"
        assert len(notices(script.asked[1].prompts)) == 1


async def test_the_tools_alone_are_a_toolset(ledger: str):
    script = Script(call("start", command="echo hi"), "started")
    async with Meantime.open(ledger, agents={"explore": PydanticAgent(TestModel())}) as mt:
        thread = mt.thread("t")
        agent = PydanticAgent(
            script.model, toolsets=[tools(thread, crawl, agents=["explore"], commands=Shell)]
        )
        assert (await agent.run("go")).output == "started"
        assert {"start", "start_agent", "output", "wait", "cancel", "crawl"} <= set(script.asked[0].tools)
        (task,) = await thread.wait()
        assert await thread.result(task) == "hi\n"


async def test_commands_and_agents_are_there_where_they_are_allowed(ledger: str):
    script = Script("ok")
    async with Meantime.open(ledger) as mt:
        agent = PydanticAgent(script.model, toolsets=[tools(mt.thread("t"))])
        await agent.run("go")
        assert not {"start", "start_agent"} & set(script.asked[0].tools)


async def test_a_subagent_is_started_and_told(ledger: str):
    worker = PydanticAgent(TestModel(custom_output_text="found it"))
    script = Script(call("start_agent", agent="explore", prompt="look around"), "on its way", "it found it")
    async with Meantime.open(ledger, agents={"explore": worker}) as mt:
        talk = Talk(PydanticAgent(script.model), mt.thread("t"), agents=("explore",))
        assert await talk.say("explore") == "on its way"
        async for said in talk.woken():
            assert said == "it found it"
            break
        assert "found it" in notices(script.asked[2].prompts)[0]


async def test_wrong_arguments_are_told_to_the_model(ledger: str):
    script = Script(call("crawl", "c1", page="x"), call("start_agent", "c2", agent="nobody"), "sorry")
    async with Meantime.open(ledger, agents={"explore": PydanticAgent(TestModel())}) as mt:
        talk = Talk(PydanticAgent(script.model, retries=3), mt.thread("t"), crawl, agents=("explore",))
        assert await talk.say("go") == "sorry"
        assert "site" in script.asked[1].results[0]
        assert "prompt" in script.asked[2].results[1]


class OnlyCrawl(AbstractCapability[Any]):
    async def prepare_tools(
        self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]
    ) -> list[ToolDefinition]:
        return [tool for tool in tool_defs if tool.name == "crawl"]


async def test_hooks_that_prepare_tools_see_those_of_a_talk(ledger: str):
    script = Script("ok", "ok")
    async with Meantime.open(ledger) as mt:
        talk = Talk(PydanticAgent(script.model), mt.thread("t"), crawl)
        await talk.say("go")
        await talk.say("go", capabilities=[OnlyCrawl()])
        assert "crawl" in script.asked[0].tools
        assert len(script.asked[0].tools) > 1
        assert script.asked[1].tools == ["crawl"]


async def test_a_tool_of_the_agent_with_the_name_of_ours_is_refused(ledger: str):
    async with Meantime.open(ledger) as mt:
        agent = PydanticAgent(TestModel(), tools=[Tool(plain, name="crawl")])
        with pytest.raises(UserError, match="'crawl'"):
            await Talk(agent, mt.thread("t"), crawl).say("go")


async def test_a_talk_adds_no_toolset_to_a_run(ledger: str, monkeypatch: pytest.MonkeyPatch):
    """With two of them the framework asks both at once, in tasks, several times for each request."""
    asked: list[int] = []
    get_tools = CombinedToolset.get_tools

    async def counted(toolset: CombinedToolset[Any], ctx: RunContext[Any]) -> Any:
        asked.append(len(toolset.toolsets))
        return await get_tools(toolset, ctx)

    monkeypatch.setattr(CombinedToolset, "get_tools", counted)
    async with Meantime.open(ledger) as mt:
        await Talk(PydanticAgent(Script("ok").model, tools=[plain]), mt.thread("t"), crawl).say("go")
    assert set(asked) == {1}
