"""The middleware by itself, in an agent that its user invokes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.messages import AIMessage, HumanMessage
from langchain.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from tests.waiting import LIMIT

from meantime import Meantime, background
from meantime.integrations.langchain import Background, Talk, TalkBackground
from meantime.kernel.errors import InvalidInput
from meantime.testing.talk import ToolCall

from .langchain_site import ScriptedModel

pytestmark = pytest.mark.anyio
CONFIG: Any = {"configurable": {"thread_id": "c"}}


@background
async def crawl(site: str) -> str:
    """Crawls a site."""
    return f"{site} has 3 pages"


async def ended(mt: Meantime, site: str = "a.org") -> str:
    task = await mt.thread("c").start(crawl.work(site))
    await mt.thread("c").wait(task)
    return f"{task.id}.1"


def scripted(*steps: Any) -> ScriptedModel:
    model = ScriptedModel()
    model._steps += steps
    return model


async def invoke(agent: Any, text: str) -> Any:
    return await agent.ainvoke({"messages": [HumanMessage(text)]}, CONFIG)


async def test_a_run_is_told_before_its_prompt_and_acknowledges_it(tmp_path: Path):
    model = scripted("it has 3", "as I said")
    async with Meantime.open(tmp_path / "work.db") as mt:
        notices = [await ended(mt, site) for site in ("b.org", "a.org")]
        agent = create_agent(model, middleware=[Background(mt.thread("c"))], checkpointer=InMemorySaver())
        result = await invoke(agent, "how big?")
        assert [message.id for message in result["messages"][:2]] == notices
        assert model._requests[0].prompts[-1] == "how big?"
        assert await mt.notices() == []
        await invoke(agent, "sorry?")
        assert len(model._requests[1].notices) == 2, "each is in the conversation once"


async def test_a_run_that_failed_tells_it_once_when_it_is_repeated(tmp_path: Path):
    model = scripted(ConnectionError("away"), "it has 3")
    async with Meantime.open(tmp_path / "work.db") as mt:
        notice = await ended(mt)
        agent = create_agent(model, middleware=[Background(mt.thread("c"))], checkpointer=InMemorySaver())
        with pytest.raises(ConnectionError):
            await invoke(agent, "how big?")
        result = await invoke(agent, "how big?")
        assert [message.id for message in result["messages"]].count(notice) == 1
        assert await mt.notices() == []


async def test_without_a_checkpointer_the_caller_holds_the_conversation(tmp_path: Path):
    model = scripted("it has 3", "as I said")
    async with Meantime.open(tmp_path / "work.db") as mt:
        notice = await ended(mt)
        agent = create_agent(model, middleware=[Background(mt.thread("c"))])
        first: Any = await agent.ainvoke({"messages": [HumanMessage("how big?")]})
        again: Any = await agent.ainvoke({"messages": [*first["messages"], HumanMessage("sorry?")]})
        assert [message.id for message in again["messages"]].count(notice) == 1


async def test_a_call_that_a_crash_cut_off_gets_a_result(tmp_path: Path):
    """A provider refuses a call without one."""
    model = scripted("I see")
    call = AIMessage("", tool_calls=[{"name": "crawl", "args": {"site": "a.org"}, "id": "c1"}])
    async with Meantime.open(tmp_path / "work.db") as mt:
        agent = create_agent(model, middleware=[Background(mt.thread("c"), crawl)])
        await agent.ainvoke({"messages": [HumanMessage("crawl"), call, HumanMessage("and?")]})
        assert model._requests[0].results == ["interrupted: what it did is not known"]
        assert model._requests[0].prompts == ["crawl", "and?"]


async def test_two_tools_that_are_called_at_once_are_two_calls(tmp_path: Path):
    go = asyncio.Event()

    @background
    async def slow(site: str) -> str:
        """Crawls slowly."""
        await go.wait()
        return site

    calls: list[Any] = [{"name": "slow", "args": {"site": f"{n}.org"}, "id": f"c{n}"} for n in range(2)]
    model = scripted(AIMessage("", tool_calls=calls), "ok")
    async with Meantime.open(tmp_path / "work.db") as mt:
        agent = create_agent(model, middleware=[Background(mt.thread("c"), slow, threshold=0.01)])
        await invoke(agent, "crawl both")
        assert sorted(str(task.tool_call_id) for task in await mt.list()) == ["c0", "c1"]
        go.set()


async def test_an_argument_of_any_name_reaches_its_function(tmp_path: Path):
    """LangChain has meanings of its own for some."""

    @background
    async def odd(config: str, runtime: str, run_manager: str) -> str:
        """Takes odd names."""
        return f"{config} {runtime} {run_manager}"

    given = {"config": "a", "runtime": "b", "run_manager": "c"}
    model = scripted(ToolCall("odd", given), "ok")
    async with Meantime.open(tmp_path / "work.db") as mt:
        agent = create_agent(model, middleware=[Background(mt.thread("c"), odd, threshold=LIMIT)])
        await invoke(agent, "go")
        assert model._requests[1].results == ["a b c"]


async def test_a_sync_run_is_refused(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        agent = create_agent(scripted("ok"), middleware=[Background(mt.thread("c"))])
        with pytest.raises(TypeError, match=r"ainvoke|sync"):
            await asyncio.to_thread(agent.invoke, {"messages": [HumanMessage("go")]})


async def test_wrong_parts_of_a_talk_are_named(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        background = Background(mt.thread("c"))
        with pytest.raises(InvalidInput, match="not an agent of LangChain"):
            Talk("agent", background)  # pyright: ignore[reportArgumentType]
        for made in (background, TalkBackground(mt.thread("c"))):
            with pytest.raises(InvalidInput, match="has no Background"):
                Talk(create_agent(scripted("ok")), made)
            with pytest.raises(InvalidInput, match="has no Background"):
                Talk(create_agent(scripted("ok"), middleware=[Background(mt.thread("d"))]), made)
        with pytest.raises(InvalidInput, match="not a Background"):
            Talk(create_agent(scripted("ok")), mt.thread("c"))  # pyright: ignore[reportArgumentType]
        with pytest.raises(InvalidInput, match="not a thread"):
            Background("c")  # pyright: ignore[reportArgumentType]


async def test_a_talk_adds_no_step_to_the_graph(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        plain = create_agent(scripted("ok"), tools=[tool(lambda at: at, description="Looks.")])
        added = create_agent(scripted("ok"), middleware=[TalkBackground(mt.thread("c"))])
        assert set(added.nodes) == set(plain.nodes)


async def test_an_agent_that_waits_for_a_talk_says_so_without_one(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        agent = create_agent(scripted("ok"), middleware=[TalkBackground(mt.thread("c"))])
        with pytest.raises(InvalidInput, match="begun a turn"):
            await agent.ainvoke({"messages": [HumanMessage("go")]})
