"""The framework's own idiom, without a Talk; and what a Talk finds after a crash."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from agent_framework import Agent, FileHistoryProvider, FileSessionStore, Message, tool
from tests.waiting import LIMIT

from meantime import InvalidInput, Meantime
from meantime.integrations.agent_framework import Background, Talk
from meantime.integrations.agent_framework.history_messages import INTERRUPTED
from meantime.testing.suite.patience import within
from meantime.testing.talk import TalkFixture, ToolCall

from .scripted_client import AgentFrameworkSite, ScriptedClient

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore:.*experimental.*")]


async def test_an_agent_with_a_context_provider_is_told_in_its_next_run_once(tmp_path: Path):
    fixture = TalkFixture(AgentFrameworkSite(tmp_path))
    client = ScriptedClient()
    client.steps = [ToolCall("crawl", {"site": "b.org"}), "3 pages each", "as I said"]
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        task = await fixture.ended(thread)
        background = Background(thread, fixture.gates.crawl, threshold=LIMIT)
        agent = Agent(
            client,
            context_providers=[FileHistoryProvider(tmp_path), background],
            require_per_service_call_history_persistence=True,
        )
        session = agent.create_session(session_id="t")
        assert (await agent.run("how big are they?", session=session)).text.endswith("3 pages each")
        assert client.requests[0].prompts[1:] == ["how big are they?"]
        assert f"{task.id}.1" in client.requests[0].prompts[0]
        assert client.requests[1].results == ["b.org has 3 pages"]
        assert await mt.notices() == []
        await agent.run("sorry?", session=session)
        assert len(client.requests[-1].notices) == 1


async def test_a_run_that_fails_tells_it_in_the_next_one(tmp_path: Path):
    fixture = TalkFixture(AgentFrameworkSite(tmp_path))
    client = ScriptedClient()
    client.steps = [ConnectionError("away"), "3 pages"]
    async with fixture.site.opened() as mt:
        thread = mt.thread("t")
        await fixture.ended(thread)
        agent = Agent(
            client,
            context_providers=[Background(thread)],
            require_per_service_call_history_persistence=True,
        )
        session = agent.create_session()
        with pytest.raises(ConnectionError):
            await agent.run("hello", session=session)
        assert len(await mt.notices()) == 1
        await agent.run("hello again", session=session)
        assert len(client.requests[-1].notices) == 1
        assert await mt.notices() == []


async def test_an_agent_that_would_forget_what_it_is_told_is_refused(tmp_path: Path):
    async with Meantime.open(tmp_path / "talk.db") as mt:
        agent = Agent(ScriptedClient(), context_providers=[Background(mt.thread("t"))])
        with pytest.raises(InvalidInput, match="require_per_service_call_history_persistence=True"):
            await agent.run("hello")


async def test_a_call_that_a_crash_left_open_is_answered_before_the_model_is_asked_again(tmp_path: Path):
    site = AgentFrameworkSite(tmp_path)
    site.script(ToolCall("dig", {}), "it may be done")
    digging = asyncio.Event()

    @tool
    async def dig() -> str:
        """Digs."""
        digging.set()
        return await asyncio.Future[str]()

    agent = Agent(site.client, tools=[dig])
    async with Meantime.open(tmp_path / "talk.db") as mt:
        talking = asyncio.ensure_future(
            Talk(agent, mt.thread("t"), store=FileSessionStore(tmp_path)).say("dig")
        )
        await within(digging.wait())
        talking.cancel()
        await asyncio.wait([talking])
        assert await Talk(agent, mt.thread("t"), store=FileSessionStore(tmp_path)).say() == "it may be done"
    assert site.requests[-1].results == [INTERRUPTED]


async def test_a_call_that_needs_approval_is_given_to_the_speaker(tmp_path: Path):
    site = AgentFrameworkSite(tmp_path)
    site.script(ToolCall("dig", {}), "it is deep")

    @tool(approval_mode="always_require")
    async def dig() -> str:
        """Digs."""
        return "a hole"

    agent = Agent(site.client, tools=[dig])
    async with Meantime.open(tmp_path / "talk.db") as mt:
        talk = Talk(agent, mt.thread("t"), store=FileSessionStore(tmp_path))
        asked = await talk.say("dig")
        assert await talk.say() is None, "a person has to answer first"
        (request,) = asked.user_input_requests
        answer = Message("user", [request.to_function_approval_response(approved=True)])
        assert await talk.say(answer) == "it is deep"  # pyright: ignore[reportArgumentType]
    assert site.requests[-1].results == ["a hole"]


async def test_something_else_than_an_agent_is_refused(tmp_path: Path):
    async with Meantime.open(tmp_path / "talk.db") as mt:
        with pytest.raises(InvalidInput, match="is not an Agent of agent-framework"):
            Talk(ScriptedClient(), mt.thread("t"))  # pyright: ignore[reportArgumentType]
