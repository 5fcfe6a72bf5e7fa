"""Agents through MCP: started, asked, answered by an elicitation; a model cannot give a permission."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from tests.waiting import until_async

from meantime import Meantime
from meantime.kernel.lifecycle import Status
from meantime.kernel.questions import PERMISSION, Choice, Question
from meantime.ports.session import AgentSettings, Hearer, Prompt
from meantime.runners.agent.agent_run import HostedAgent
from meantime.testing.scripted_host import ScriptedHost
from outcomes import completed

from .conftest import Direct, code, id_in, texts
from .tasking import Following, ask

pytestmark = pytest.mark.anyio
COLOURS = (Choice("red"), Choice("green"))


async def turn(prompt: Prompt, hearer: Hearer) -> str:
    if "may I" in prompt.text:
        asked = Question(id="q-1", text="May I?", kind="permission", choices=PERMISSION, subject="bash")
    else:
        asked = Question(id="q-2", text="Which colour?", choices=COLOURS)
    reply = await hearer.ask(asked)
    return f"{reply.choices} by {reply.by}"


@pytest.fixture
async def mt(tmp_path):
    settings = AgentSettings(runner="python", description="Finds things\nin a code base")
    agents = {"explore": HostedAgent(settings, ScriptedHost(turn))}
    async with Meantime.open(tmp_path / "work.db", agents=agents) as opened:
        yield opened


async def waiting(mt: Meantime, id: str) -> bool:
    return (await mt.get(id)).status is Status.WAITING


@pytest.mark.behaviour("L28")
async def test_a_model_answers_a_question_and_cannot_give_a_permission(mt: Meantime):
    async with Client(Direct(mt).door.server) as client:
        named = [tool for tool in (await client.list_tools()).tools if tool.name == "start_agent"]
        assert named[0].input_schema["properties"]["agent"]["enum"] == ["explore"]
        assert named[0].description.endswith("\n- explore: Finds things in a code base")
        id = id_in(await client.call_tool("start_agent", {"agent": "explore", "prompt": "choose"}))
        await until_async(lambda: waiting(mt, id), "the agent asks")
        assert "asks: Which colour?" in texts(await client.call_tool("list", {}))[0]
        wrong = await client.call_tool("answer", {"id": id, "text": "blue"})
        assert code(wrong) == "invalid_input"
        assert "red, green" in texts(wrong)[0]
        await client.call_tool("answer", {"id": id, "text": "green"})
        assert completed((await mt.thread("conv-1").wait(id))[0]).result == "('green',) by agent"
        id = id_in(await client.call_tool("start_agent", {"agent": "explore", "prompt": "may I?"}))
        await until_async(lambda: waiting(mt, id), "the agent asks")
        assert code(await client.call_tool("answer", {"id": id, "text": "allow"})) == "needs_a_person"
        await client.call_tool("answer", {"id": id, "text": "reject"})
        assert completed((await mt.thread("conv-1").wait(id))[0]).result == "('reject',) by agent"


@pytest.mark.behaviour("L28")
@pytest.mark.parametrize(
    ("response", "told"),
    [
        ({"action": "accept", "content": {"answer": "always"}}, "('always',) by user"),
        ({"action": "decline"}, "('reject',) by user"),
    ],
)
async def test_a_task_asks_through_an_elicitation_and_its_person_answers(
    mt: Meantime, response: dict[str, Any], told: str
):
    direct = Direct(mt)
    direct.taken = True
    async with Client(direct.door.server, extensions=[Following()]) as client:
        task = await direct.held.start("start_agent", {"agent": "explore", "prompt": "may I?"})
        await until_async(lambda: waiting(mt, task.id), "the agent asks")
        state = await ask(client, "tasks/get", taskId=task.id)
        assert state["status"] == "input_required"
        request = state["inputRequests"]["q-1"]
        assert (request["method"], request["params"]["message"]) == ("elicitation/create", "May I?")
        offered = request["params"]["requestedSchema"]["properties"]["answer"]["oneOf"]
        assert [one["const"] for one in offered] == ["allow", "always", "reject"]
        await ask(client, "tasks/update", taskId=task.id, inputResponses={"q-0": response})  # another's
        assert await waiting(mt, task.id)
        await ask(client, "tasks/update", taskId=task.id, inputResponses={"q-1": response})
        assert completed((await mt.thread("conv-1").wait(task.id))[0]).result == told
