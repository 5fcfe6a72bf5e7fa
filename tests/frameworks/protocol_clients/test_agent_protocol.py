"""LangGraph's SDK and deepagents' async subagents, unchanged, against this server."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from guide import examples
from langchain.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import ConflictError, NotFoundError, UnprocessableEntityError
from tests.waiting import pause_async, until_async

from meantime import HttpDoor, Meantime
from meantime.kernel.questions import Question
from meantime.ports.session import AgentSettings, Hearer, Prompt
from meantime.runners.agent.agent_run import HostedAgent
from meantime.testing.scripted_host import ScriptedHost

from .agent_daemon import SLOW, agent_daemon

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::langchain_core._api.LangChainBetaWarning"),
]


def saying(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def turn(prompt: Prompt, hearer: Hearer) -> str:
    text = prompt.text.splitlines()[-1]
    if text == "ask":
        reply = await hearer.ask(Question(id="q-1", text="Which colour?"))
        return f"painted {reply.text}"
    if text == "slow":
        await asyncio.Event().wait()
    if text == "fail":
        raise ValueError("it broke")
    return f"done: {text}"


@pytest.fixture
async def door() -> AsyncIterator[HttpDoor]:
    agents = {"explore": HostedAgent(AgentSettings(runner="python", description="Looks"), ScriptedHost(turn))}
    async with Meantime.open(":memory:", agents=agents) as mt, mt.serve(port=0) as door:
        yield door


@pytest.fixture
async def client(door: HttpDoor) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=f"{door.url}/agent-protocol", api_key=door.token) as found:
        yield found


async def test_the_client_of_the_sdk_starts_waits_streams_and_cancels(client: LangGraphClient):
    (assistant,) = await client.assistants.search()
    assert (await client.assistants.get("explore"))["description"] == "Looks"
    thread = await client.threads.create(metadata={"who": "me"})
    id = thread["thread_id"]
    values: Any = await client.runs.wait(id, assistant["assistant_id"], input=saying("look"))
    assert [message["content"] for message in values["messages"]] == ["look", "done: look"]
    created: list[Any] = []
    parts = [
        part
        async for part in client.runs.stream(
            id,
            "explore",
            input=saying("again"),
            stream_mode=["values", "messages-tuple"],
            on_run_created=created.append,
        )
    ]
    assert parts[-1].event == "end"
    assert [part.data[0]["content"] for part in parts if part.event == "messages"] == ["again", "done: again"]
    run = await client.runs.get(id, created[0]["run_id"])
    assert run["status"] == "success"
    slow = await client.runs.create(id, "explore", input=saying("slow"))
    await client.runs.cancel(id, slow["run_id"], wait=True)
    assert [one["status"] for one in await client.runs.list(id)] == ["interrupted", "success", "success"]
    found = await client.threads.search(metadata={"who": "me"})
    assert [one["thread_id"] for one in found] == [id]
    state = await client.threads.get_state(id)
    assert len(state["values"]["messages"]) == 5  # type: ignore[call-overload]
    await client.threads.delete(id)
    with pytest.raises(NotFoundError):
        await client.threads.get(id)


@pytest.mark.parametrize("mode", [None, "values", ["updates", "messages-tuple"]], ids=str)
async def test_the_client_of_the_sdk_joins_a_stream(client: LangGraphClient, mode: Any):
    id = (await client.threads.create())["thread_id"]
    run = await client.runs.create(id, "explore", input=saying("look"))
    given = {} if mode is None else {"stream_mode": mode}
    parts = [part async for part in client.runs.join_stream(id, run["run_id"], **given)]
    assert parts[-1].event == "end"
    assert "done: look" in str([part.data for part in parts])


async def test_the_client_without_async_works_too(door: HttpDoor):
    def talk() -> tuple[str, str]:
        with get_sync_client(url=f"{door.url}/agent-protocol", api_key=door.token) as client:
            id = client.threads.create()["thread_id"]
            values: Any = client.runs.wait(id, "explore", input=saying("look"))
            events = [part.event for part in client.runs.stream(id, "explore", input=saying("again"))]
            return values["messages"][-1]["content"], events[-1]

    assert await asyncio.to_thread(talk) == ("done: look", "end")


async def test_the_client_of_the_sdk_answers_an_interrupt(client: LangGraphClient):
    thread = await client.threads.create()
    id = thread["thread_id"]
    values: Any = await client.runs.wait(id, "explore", input=saying("ask"))
    assert values["__interrupt__"][0]["value"]["question"] == "Which colour?"
    assert (await client.threads.get(id))["status"] == "interrupted"
    values = await client.runs.wait(id, "explore", command={"resume": "blue"})
    assert values["messages"][-1]["content"] == "painted blue"
    assert (await client.threads.get(id))["status"] == "idle"


async def test_errors_are_those_of_the_sdk(client: LangGraphClient):
    with pytest.raises(Exception, match=r"ValueError: .*it broke"):
        await client.runs.wait(None, "explore", input=saying("fail"))
    with pytest.raises(NotFoundError, match="There is no agent 'nobody'"):
        await client.runs.create(None, "nobody", input=saying("x"))
    with pytest.raises(UnprocessableEntityError, match="input has no messages"):
        await client.runs.create(None, "explore", input={"messages": []})
    thread = (await client.threads.create())["thread_id"]
    await client.runs.create(thread, "explore", input=saying("slow"))
    with pytest.raises(ConflictError, match="goes on"):
        await client.runs.create(thread, "explore", input=saying("x"), multitask_strategy="reject")


class Delegating(BaseChatModel):
    """Starts a subagent when it is asked to; otherwise does what it is told with the one that it started."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: Any, *rest: Any, **more: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _reply(self, messages: list[Any]) -> AIMessage:
        at, asked = [
            (number, text)
            for number, message in enumerate(messages)
            if isinstance(message, HumanMessage) and (text := message.text)[0] != "["
        ][-1]
        # A subagent that is quick is reported, as a message in brackets, before or after the tool's answer.
        answers = [message.text for message in messages[at:] if isinstance(message, ToolMessage)]
        if answers:
            return AIMessage(answers[-1])
        verb, _, rest = asked.partition(" ")
        if verb == "start":
            given = {"description": rest, "subagent_type": "researcher"}
        else:
            told = [message.text for message in messages if isinstance(message, ToolMessage)]
            given = {"task_id": told[0].rpartition("task_id: ")[2]} | ({"message": rest} if rest else {})
        call = {"name": f"{verb}_async_task", "args": given, "id": f"call-{len(messages)}"}
        return AIMessage("", tool_calls=[call])


class Deep:
    """A deep agent whose subagent is the agent of this server."""

    def __init__(self, url: str, token: str) -> None:
        spec: Any = {
            "name": "researcher",
            "description": "Looks things up.",
            "graph_id": "explore",
            "url": f"{url}/agent-protocol",
            "headers": {"Authorization": f"Bearer {token}"},
        }
        self._agent = create_deep_agent(Delegating(), subagents=[spec], checkpointer=InMemorySaver())

    async def say(self, text: str) -> str:
        given: Any = {"messages": [HumanMessage(text)]}
        found = await self._agent.ainvoke(given, {"configurable": {"thread_id": "c"}})
        return found["messages"][-1].text

    async def until(self, status: str) -> dict[str, Any]:
        async def found() -> dict[str, Any]:
            checked = json.loads(await self.say("check"))
            if checked["status"] == status:
                return checked
            await pause_async(0.5, "each check is a message, and after many of them it summarizes")
            return {}

        return await until_async(found, f"the subagent is {status}")


async def test_an_async_subagent_of_deepagents_is_a_task_here(door: HttpDoor):
    deep = Deep(door.url, door.token)
    assert "Launched async subagent" in await deep.say("start look around")
    assert (await deep.until("success"))["result"] == "done: look around"
    await deep.say("update and now the garden")
    assert (await deep.until("success"))["result"] == "done: and now the garden"
    await deep.say("update ask")
    assert (await deep.until("waiting"))["interrupts"][0]["value"]["question"] == "Which colour?"
    await deep.say("update slow")
    await deep.until("running")
    assert "ancel" in await deep.say("cancel")
    assert (await deep.until("cancelled"))["status"] == "cancelled"


async def _messages(client: LangGraphClient, thread: str, seen: list[str]) -> str:
    last = ""
    async for part in client.runs.stream(thread, "explore", input=saying(SLOW), stream_mode="messages-tuple"):
        last = part.event
        if part.event == "messages":
            seen.append(part.data[0]["content"])
    return last


async def test_a_stream_survives_a_kill_of_the_daemon_and_tells_each_message_once(tmp_path: Path):
    with agent_daemon(tmp_path) as daemon:
        async with get_client(url=f"{daemon.url}/agent-protocol", api_key=daemon.token) as client:
            thread = (await client.threads.create(metadata={"a": 1}))["thread_id"]
            seen: list[str] = []
            streaming = asyncio.ensure_future(_messages(client, thread, seen))
            await until_async(lambda: len(seen) == 2 and daemon.waiting(), "one message is told")
            await asyncio.to_thread(daemon.end, signal.SIGKILL)
            await asyncio.to_thread(daemon.up)
            (run,) = await client.runs.list(thread)  # found again
            assert run["status"] == "running"
            daemon.open_gate()
            assert await streaming == "end"
            assert seen == [SLOW, "one", "two"]
            assert (await client.runs.get(thread, run["run_id"]))["status"] == "success"
            assert (await client.threads.get(thread))["metadata"] == {"a": 1}
            assert daemon.starts() == 1


def test_the_code_of_the_guide_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for example in examples("agent-protocol.md"):
        assert example.run() == example.prints
