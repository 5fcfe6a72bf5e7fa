"""Any dialect's tools over MCP: its names, its texts, its notices, its policy."""

from __future__ import annotations

import json
import subprocess

import pytest
from mcp import Client
from mcp.client.extension import advertise

from daemon.conftest import Place
from meantime import Agent, Meantime
from meantime.testing import FakeSessionRunner

from .conftest import QUICK, Direct, notices, texts
from .speaking import COMMAND, Raw
from .tasking import EXTENSION, call_as_task
from .test_http import ACCEPT, INITIALIZE, connected, door, plain  # noqa: F401  a fixture

pytestmark = pytest.mark.anyio


@pytest.fixture
async def mt():
    async with Meantime.open(":memory:", settings=QUICK, runners=[FakeSessionRunner("4 modules")]) as mt:
        yield mt


@pytest.mark.behaviour("H22")
@pytest.mark.parametrize("dialect", ["asyncagents", "background"])
async def test_tools_texts_and_notices_are_the_dialects_own(mt: Meantime, era: str, dialect: str):
    direct = Direct(mt, dialect=dialect)
    given = {"description": "count", "prompt": "Count the modules.", "agent": "explore"}
    async with Client(direct.door.server, mode=era) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == [f"{dialect}_{verb}" for verb in ("task", "output", "list", "cancel", "clear")]
        assert f"{dialect}_task" in (client.instructions or "")
        started = await client.call_tool(f"{dialect}_task", given)
        assert texts(started)[0].startswith("Task launched in the background.")
        (task,) = await mt.list("all")
        await mt.thread("conv-1").wait(task.id)
        listed = await client.call_tool(f"{dialect}_list", {})
        assert f"- {task.id} [completed]" in texts(listed)[0]
        told = texts(listed)[1] if notices(listed) else texts(started)[1]
        assert "4 modules" in told
        assert told.startswith("✓ **Agent" if dialect == "asyncagents" else "Background task")
    await direct.held.close()


@pytest.mark.behaviour("H22")
async def test_the_dictionaries_of_seed_003_are_json_over_mcp(mt: Meantime, era: str):
    direct = Direct(mt, dialect="jaato")
    given = {"plugin_name": "agents", "tool_name": "explore", "arguments": {"prompt": "Count the modules."}}
    async with Client(direct.door.server, mode=era) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names[0] == "startBackgroundTask"
        started = json.loads(texts(await client.call_tool("startBackgroundTask", given))[0])
        asked = {"task_id": started["task_id"], "wait": True}
        answer = json.loads(texts(await client.call_tool("getBackgroundTaskResult", asked))[0])
        assert (answer["plugin_name"], answer["result"]) == ("agents", "4 modules")
        wrong = await client.call_tool("startBackgroundTask", {**given, "plugin_name": "web"})
        assert wrong.is_error
        assert "Capable plugins: [" in json.loads(texts(wrong)[0])["error"]
    await direct.held.close()


async def test_a_resume_is_no_task_of_mcp(mt: Meantime):
    """A client that follows tasks by itself gets one for what is new, and an answer for the rest."""
    direct = Direct(mt, dialect="background")
    await (await mt.thread("conv-1").start(Agent("explore", "look"), id="t_one")).wait()
    given = {"description": "count", "prompt": "Count.", "agent": "explore"}
    async with Client(direct.door.server, mode="auto", extensions=[advertise(EXTENSION)]) as client:
        new = await call_as_task(client, "auto", "background_task", given)
        assert (await mt.get(new["taskId"])).agent == "explore"
        said = await client.call_tool("background_task", {"resume": "t_one", "prompt": "And?"})
        assert texts(said)[0].startswith("Resume #1 started")
        wrong = await client.call_tool("background_task", {"prompt": "And?"})
        assert "A new task needs description, prompt and agent." in texts(wrong)[0]
    await direct.held.close()


@pytest.mark.behaviour("N19", "R7")
@pytest.mark.parametrize(("dialect", "told"), [("asyncagents", 0), ("background", 1)])
async def test_whether_a_read_settles_is_the_dialects(mt: Meantime, dialect: str, told: int):
    direct = Direct(mt, dialect=dialect)
    await (await mt.thread("conv-1").start(Agent("explore", "look"), id="t_one")).wait()
    async with Client(direct.door.server, mode="legacy") as client:
        said = await client.call_tool(f"{dialect}_output", {"task_id": "t_one"})
        assert "4 modules" in texts(said)[0]
        assert len(texts(said)) == 1 + told
    await direct.held.close()


async def test_by_the_address(mt: Meantime, door, era: str):  # noqa: F811
    async with connected(door, era, path="/mcp?thread=conv-1&dialect=background") as client:
        assert "background_task" in [tool.name for tool in (await client.list_tools()).tools]
        assert "background_task" in (client.instructions or "")
    async with connected(door, era, path="/mcp?thread=conv-1") as client:
        assert "start" in [tool.name for tool in (await client.list_tools()).tools]
    async with plain(door, Authorization=f"Bearer {door.token}") as http:
        answer = await http.post("/mcp?dialect=klingon", json=INITIALIZE)
        assert answer.status_code == 404
        assert "background" in answer.text


@pytest.mark.breadth
def test_by_the_command_line(place: Place):
    place.configure("[http]\nport = 0\n")
    with Raw(place, "--thread", "conv-1", "--dialect", "background") as raw:
        raw.hello()
        tools = [tool["name"] for tool in raw.ask("tools/list")["tools"]]
        assert tools[0] == "background_task"
        assert raw.call("background_list")["content"][0]["text"] == "No background tasks found"
        given = {"description": "count", "prompt": "Count.", "agent": "explore"}
        refused = raw.call("background_task", **given)
        assert refused["isError"], "there is no runner for agents in this daemon"
        assert "[agents.NAME]" in refused["content"][0]["text"]
    wrong = subprocess.run(
        [*COMMAND, "--dialect", "klingon"], env=place.environ, capture_output=True, text=True
    )
    assert wrong.returncode == 2
    assert "There are: asyncagents, background" in wrong.stderr
