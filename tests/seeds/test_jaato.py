"""Seed 003 in its own words: the jaato dialect, with real commands and functions. BackgroundPlugin, which
says the same on the seed's own plugins, is in tests/plugins/test_background.py."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until_async

from gates import Gate
from meantime import InlineLimits, Meantime, Said, Settings, Shell, StdioServer
from meantime.app.ledger_owner import LedgerOwner
from meantime.dialects.jaato import AUTO_APPROVED, BackgroundConfig, Jaato
from meantime.ports.owner import About
from meantime.testing import FakeClock, FakeSessionRunner
from meantime.toolset.owner_catalog import OwnerCatalog
from meantime.toolset.toolset import Toolset

pytestmark = pytest.mark.anyio
PEER = Path(__file__).parents[1] / "integrations" / "mcp" / "peers" / "scripted.py"
SETTINGS = Settings(stop_grace=0.2, inline=InlineLimits(200, 10))
TASK_ID = {"type": "STRING", "description": "Task ID returned from startBackgroundTask"}
# The declarations of the seed, as a Gemini client sends them.
DECLARATIONS = [
    {
        "name": "startBackgroundTask",
        "description": """Start a tool execution in the background.

Use this when you anticipate a tool call will take significant time
(e.g., long builds, complex searches, external API calls). The task
runs asynchronously and you can continue with other work.

Returns a task_id you can use to check status or get results later.""",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "plugin_name": {"type": "STRING", "description": "Name of the plugin providing the tool"},
                "tool_name": {"type": "STRING", "description": "Name of the tool to execute"},
                "arguments": {"type": "OBJECT", "description": "Arguments to pass to the tool"},
                "timeout_seconds": {"type": "NUMBER", "description": "Optional timeout in seconds"},
            },
            "required": ["plugin_name", "tool_name", "arguments"],
        },
    },
    {
        "name": "getBackgroundTaskStatus",
        "description": "Check the current status of a background task.",
        "parameters": {"type": "OBJECT", "properties": {"task_id": TASK_ID}, "required": ["task_id"]},
    },
    {
        "name": "getBackgroundTaskResult",
        "description": """Get the result of a background task.

If the task is still running, returns current status without blocking.
Use this after checking status shows COMPLETED or FAILED.""",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "task_id": TASK_ID,
                "wait": {
                    "type": "BOOLEAN",
                    "description": "If true, block until task completes (default: false)",
                },
            },
            "required": ["task_id"],
        },
    },
    {
        "name": "cancelBackgroundTask",
        "description": "Cancel a running background task.",
        "parameters": {
            "type": "OBJECT",
            "properties": {"task_id": {"type": "STRING", "description": "Task ID to cancel"}},
            "required": ["task_id"],
        },
    },
    {
        "name": "listBackgroundTasks",
        "description": "List all active background tasks across all plugins.",
        "parameters": {
            "type": "OBJECT",
            "properties": {
                "plugin_name": {"type": "STRING", "description": "Optional: filter by plugin name"}
            },
        },
    },
    {
        "name": "listBackgroundCapableTools",
        "description": """List all tools that support background execution.

Use this to discover which tools can be run in background mode.""",
        "parameters": {"type": "OBJECT", "properties": {}},
    },
]
INSTRUCTIONS = """## Background Task Execution

You have the ability to run long-running tool executions in the background.

**When to use background execution:**
- Commands that typically take >10 seconds (builds, installs, complex searches)
- External API calls with high latency
- Operations where you can do other useful work while waiting

**Workflow:**
1. Call `startBackgroundTask` with the plugin, tool, and arguments
2. Continue with other work or inform the user the task is running
3. Periodically check `getBackgroundTaskStatus`
4. Once complete, use `getBackgroundTaskResult` to get the output

**Available tools:**
- `listBackgroundCapableTools` - See which tools support background mode
- `startBackgroundTask` - Start a task in background
- `getBackgroundTaskStatus` - Check if a task is done
- `getBackgroundTaskResult` - Get the result
- `cancelBackgroundTask` - Cancel if no longer needed
- `listBackgroundTasks` - See all active background tasks
"""


async def search(text: str) -> list[str]:
    return [f"{text}.txt"]


async def broken() -> None:
    raise ValueError("no such file")


class Agent:
    """Calls the tools of the dialect. What a program gets is what the model reads."""

    def __init__(self, mt: Meantime, thread: str = "conv-1", **options: Any) -> None:
        self.thread = mt.thread(thread)
        given: dict[str, Any] = {
            "dialect": "jaato",
            "commands": Shell,
            "agents": None,
            "tools": {},
            **options,
        }
        given["tools"] = {"search": search, "broken": broken, **given["tools"]}
        self.toolset = self.thread.toolset(**given)

    async def said(self, name: str, **arguments: Any) -> Said:
        said = await self.toolset.call(name, arguments)
        assert json.loads(said.text) == said.data
        return said

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return (await self.said(name, **arguments)).data

    async def run(self, command: str, **more: Any) -> dict[str, Any]:
        return await self.start("cli", "runCommand", {"command": command}, **more)

    async def start(self, plugin: str, tool: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
        return await self.call(
            "startBackgroundTask", plugin_name=plugin, tool_name=tool, arguments=arguments, **more
        )

    async def result(self, id: str) -> dict[str, Any]:
        return await self.call("getBackgroundTaskResult", task_id=id, wait=True)


@pytest.fixture
async def mt(clock: FakeClock):
    async with Meantime.open(":memory:", clock=clock, settings=SETTINGS) as opened:
        yield opened


@pytest.fixture
def agent(mt: Meantime) -> Agent:
    return Agent(mt)


# -- the six tools


@pytest.mark.behaviour("H22")
async def test_the_tools_are_declared_to_the_letter(agent: Agent):
    names = [one["name"] for one in DECLARATIONS]
    assert [one for one in await agent.toolset.schemas("gemini") if one["name"] in names] == DECLARATIONS
    assert AUTO_APPROVED == ("getBackgroundTaskStatus", "listBackgroundTasks", "listBackgroundCapableTools")


@pytest.mark.behaviour("H23")
async def test_the_instructions_are_to_the_letter(mt: Meantime, agent: Agent):
    plain = Agent(mt, commands=None)
    assert await plain.toolset.guidance() == INSTRUCTIONS
    with_commands = await agent.toolset.guidance()
    assert with_commands.startswith(INSTRUCTIONS)
    assert "auto_backgrounded" in with_commands  # phase 4: so that a model understands these answers
    no_cancel = Agent(mt, commands=None, allow_model_cancel=False)
    assert "cancelBackgroundTask" not in await no_cancel.toolset.guidance()


@pytest.mark.behaviour("F2")
@pytest.mark.scenario("003", "tool startBackgroundTask")
async def test_start_answers_with_a_handle(agent: Agent):
    answer = await agent.run("sleep 600; : make", timeout_seconds=90)
    id = answer["task_id"]
    assert answer == {
        "success": True,
        "task_id": id,
        "plugin_name": "cli",
        "tool_name": "runCommand",
        "estimated_duration_seconds": 60.0,
        "message": f"Task started in background. Use task_id '{id}' to check status.",
    }
    task = await agent.thread.get(id)
    assert (task.run.timeout, task.status) == (90, "running")


@pytest.mark.behaviour("F13")
@pytest.mark.scenario("003", "tool startBackgroundTask")
async def test_start_says_which_tool_is_not_capable(agent: Agent):
    for plugin, tool, error in (
        ("web", "fetch", "Plugin 'web' {no}. Capable plugins: ['cli', 'tools']"),
        ("", "fetch", "Plugin '' {no}. Capable plugins: ['cli', 'tools']"),
        ("agents", "explore", "Plugin 'agents' {no}. Capable plugins: ['cli', 'tools']"),
        ("cli", "listFiles", "Tool 'listFiles' in plugin 'cli' {no}"),
        ("tools", "nothing", "Tool 'nothing' in plugin 'tools' {no}"),
        ("tools", "", "Tool '' in plugin 'tools' {no}"),
    ):
        given = {"plugin_name": plugin, "tool_name": tool, "arguments": {}}
        said = await agent.said("startBackgroundTask", **given)
        error = error.format(no="does not support background execution")
        assert (said.code, said.data) == ("not_capable", {"success": False, "error": error})
    wrong = await agent.start("cli", "runCommand", {"comand": "true"})
    assert wrong["success"] is False
    assert 'needs a "command"' in wrong["error"]
    assert (await agent.call("listBackgroundTasks"))["count"] == 0


@pytest.mark.behaviour("F1", "F2")
@pytest.mark.scenario("003", "tool startBackgroundTask")
async def test_start_starts_functions_and_agents():
    async with Meantime.open(":memory:", runners=[FakeSessionRunner("4 modules")]) as other:
        agent = Agent(other, agents=["explore"])
        found = await agent.start("tools", "search", {"text": "a"})
        assert (await agent.result(found["task_id"]))["result"] == ["a.txt"]
        asked = await agent.start("agents", "explore", {"prompt": "Count the modules."})
        assert (asked["plugin_name"], asked["tool_name"]) == ("agents", "explore")
        assert (await agent.result(asked["task_id"]))["result"] == "4 modules"
        for wrong in ({}, {"prompt": "?", "name": "x"}):
            assert (await agent.start("agents", "explore", wrong))["error"].startswith("An agent ")
        assert (await agent.start("agents", "nobody", {"prompt": "?"}))["error"].startswith("Tool 'nobody'")


@pytest.mark.behaviour("F4")
@pytest.mark.scenario("003", "tool startBackgroundTask")
async def test_start_starts_a_servers_tool_by_the_servers_name(tmp_path: Path):
    server = StdioServer(command=[sys.executable, str(PEER), "well", str(tmp_path)])
    async with Meantime.open(":memory:", settings=SETTINGS, servers={"wiki": server}) as mt:
        agent = Agent(mt)
        tasks = agent.thread._tasks
        agent.toolset = Toolset(tasks, OwnerCatalog(tasks, LedgerOwner(About)), "conv-1", "jaato")
        started = await agent.start("wiki", "add", {"a": 1, "b": 2})
        assert (started["plugin_name"], started["tool_name"]) == ("wiki", "add")
        assert (await agent.result(started["task_id"]))["result"] == {"sum": 3}
        assert "Plugin 'wikki' does not" in (await agent.start("wikki", "add", {}))["error"]


@pytest.mark.behaviour("R1")
@pytest.mark.scenario("003", "tool getBackgroundTaskStatus")
async def test_a_status_has_the_seeds_words(agent: Agent, clock: FakeClock):
    id = (await agent.run("sleep 600", timeout_seconds=5))["task_id"]
    assert await agent.call("getBackgroundTaskStatus", task_id=id) == {
        "task_id": id,
        "plugin_name": "cli",
        "status": "running",
    }
    await clock.advance(5)
    await agent.thread.wait(id)
    assert (await agent.call("getBackgroundTaskStatus", task_id=id))["status"] == "timeout"
    said = await agent.said("getBackgroundTaskStatus", task_id="abc-123")
    assert (said.code, said.data) == ("not_found", {"error": "Task 'abc-123' not found"})


@pytest.mark.behaviour("I2")
@pytest.mark.scenario("003", "tool getBackgroundTaskResult")
async def test_a_result_has_result_error_and_duration(agent: Agent):
    done, failed, no = [
        (await agent.start(plugin, tool, arguments))["task_id"]
        for plugin, tool, arguments in (
            ("tools", "search", {"text": "a"}),
            ("tools", "broken", {}),
            ("cli", "runCommand", {"command": "echo no; exit 3"}),
        )
    ]
    answer = await agent.result(done)
    assert answer.pop("duration_seconds") >= 0
    assert answer == {
        "task_id": done,
        "plugin_name": "tools",
        "status": "completed",
        "result": ["a.txt"],
        "error": None,
    }
    answer = await agent.result(failed)
    assert (answer["status"], answer["result"], answer["error"]) == (
        "failed",
        None,
        "ValueError: no such file",
    )
    answer = await agent.result(no)
    assert (answer["status"], answer["error"]) == ("failed", "It ended with exit code 3.")
    assert answer["result"] == {"returncode": 3, "output": "no\n"}
    assert await agent.result("abc-123") == {"error": "Task 'abc-123' not found"}


@pytest.mark.behaviour("I2", "R6")
@pytest.mark.scenario("003", "tool getBackgroundTaskResult")
async def test_a_result_does_not_block_unless_it_is_asked_to(agent: Agent):
    id = (await agent.run("sleep 600"))["task_id"]
    assert await agent.call("getBackgroundTaskResult", task_id=id) == {
        "task_id": id,
        "plugin_name": "cli",
        "status": "running",
        "result": None,
        "error": None,
        "duration_seconds": None,
    }
    waiting = asyncio.create_task(agent.result(id))
    await agent.thread.cancel(id, wait=True)
    assert (await waiting)["status"] == "cancelled"


@pytest.mark.behaviour("N19", "R7")
@pytest.mark.scenario("003", "tool getBackgroundTaskResult")
async def test_reading_a_result_counts_as_told_with_the_turn(mt: Meantime, agent: Agent):
    id = (await agent.run("echo hi"))["task_id"]
    await agent.thread.wait(id)
    async with agent.thread.turn() as turn:
        (notice,) = turn.notices
        text = notice.message("jaato").text
        assert text.startswith(f"Background task '{id}' (cli.runCommand) completed after ")
        assert "hi" in text
    async with agent.thread.turn() as turn:  # nobody acknowledged the first
        await Agent(mt, turn=turn).result(id)
        await turn.ack()
    async with agent.thread.turn() as turn:
        assert turn.notices == []


@pytest.mark.behaviour("N17")
@pytest.mark.scenario("003", "tool getBackgroundTaskResult")
async def test_a_long_result_names_its_file(agent: Agent):
    id = (await agent.run("seq 1000"))["task_id"]
    answer = await agent.result(id)
    assert Path(answer["result_file"]).read_text().split()[-1] == "1000"
    assert answer["result"]["output_file"] == answer["result_file"]


@pytest.mark.behaviour("L6", "R3")
@pytest.mark.scenario("003", "tool cancelBackgroundTask")
async def test_a_cancel_waits_for_the_ending(agent: Agent):
    id = (await agent.run("sleep 600"))["task_id"]
    assert await agent.call("cancelBackgroundTask", task_id=id) == {"task_id": id, "cancelled": True}
    answer = await agent.call("getBackgroundTaskResult", task_id=id)
    assert (answer["status"], answer["error"]) == ("cancelled", "The task was cancelled by agent.")
    assert (await agent.call("cancelBackgroundTask", task_id=id))["cancelled"] is True  # it is done already
    assert await agent.call("cancelBackgroundTask", task_id="no-such") == {
        "error": "Task 'no-such' not found"
    }


@pytest.mark.behaviour("I8")
@pytest.mark.scenario("003", "tool listBackgroundTasks")
async def test_the_list_shows_what_is_active_by_plugin(mt: Meantime, agent: Agent):
    gate = asyncio.Event()
    agent = Agent(mt, tools={"wait": gate.wait})
    first = (await agent.run("sleep 600; : pip install"))["task_id"]
    second = (await agent.start("tools", "wait", {}))["task_id"]
    await agent.thread.wait((await agent.run("true"))["task_id"])
    elsewhere = Agent(mt, "conv-2")
    answer = await agent.call("listBackgroundTasks")
    assert ([task["task_id"] for task in answer["tasks"]], answer["count"]) == ([first, second], 2)
    created = answer["tasks"][0].pop("created_at")
    at = (await agent.thread.get(first)).created_at
    assert datetime.fromisoformat(created).timestamp() == pytest.approx(at)
    assert answer["tasks"][0] == {
        "task_id": first,
        "plugin_name": "cli",
        "tool_name": "runCommand",
        "estimated_duration_seconds": 30.0,
    }
    only = await agent.call("listBackgroundTasks", plugin_name="tools")
    assert [task["task_id"] for task in only["tasks"]] == [second]
    assert await elsewhere.call("listBackgroundTasks") == {"tasks": [], "count": 0}


@pytest.mark.behaviour("I8")
@pytest.mark.scenario("003", "tool listBackgroundTasks")
async def test_the_list_shows_what_was_started_otherwise(agent: Agent):
    id = (await agent.thread.start(Shell("sleep 600"))).id
    (task,) = (await agent.call("listBackgroundTasks", plugin_name="cli"))["tasks"]
    assert (task["task_id"], task["tool_name"]) == (id, "runCommand")


@pytest.mark.behaviour("F16")
@pytest.mark.scenario("003", "tool listBackgroundCapableTools")
async def test_capable_tools_are_listed_by_plugin(mt: Meantime, agent: Agent):
    assert await agent.call("listBackgroundCapableTools") == {
        "tools": [
            {"plugin_name": "cli", "tool_name": "runCommand"},
            {"plugin_name": "tools", "tool_name": "broken"},
            {"plugin_name": "tools", "tool_name": "search"},
        ],
        "count": 3,
    }
    nothing = Agent(mt, background=False)
    assert [one.name for one in await nothing.toolset.tools()] == [
        "getBackgroundTaskStatus",
        "getBackgroundTaskResult",
        "cancelBackgroundTask",
        "listBackgroundTasks",
        "runCommand",
    ]


@pytest.mark.behaviour("F16")
@pytest.mark.scenario("003", "tool listBackgroundCapableTools")
async def test_the_tools_of_servers_are_listed_as_capable(tmp_path: Path):
    """Of those that answer; what is listed can be started by just these names."""
    server = StdioServer(command=[sys.executable, str(PEER), "well", str(tmp_path)])
    broken = StdioServer(command=[sys.executable, "-c", "raise SystemExit(1)"])
    servers = {"wiki": server, "broken": broken}
    async with Meantime.open(":memory:", settings=SETTINGS, servers=servers) as mt:
        agent = Agent(mt)
        tasks = agent.thread._tasks
        agent.toolset = Toolset(tasks, OwnerCatalog(tasks, LedgerOwner(About)), "conv-1", "jaato")
        listed = (await agent.call("listBackgroundCapableTools"))["tools"]
        offered = [tool.name for tool in await mt.tools("wiki")]
        assert [one["tool_name"] for one in listed if one["plugin_name"] == "wiki"] == offered
        assert "broken" not in {one["plugin_name"] for one in listed}
        assert (await agent.start("wiki", "add", {"a": 1, "b": 2}))["success"] is True


# -- the usage patterns


@pytest.mark.behaviour("F2")
@pytest.mark.scenario("003", "pattern 1")
async def test_the_model_starts_what_is_slow_and_goes_on(agent: Agent, tmp_path: Path):
    marker = tmp_path / "installed"
    started = await agent.run(f"echo '# npm install'; touch {marker}")
    assert started["estimated_duration_seconds"] == 30.0
    await agent.thread.wait(started["task_id"])
    status = await agent.call("getBackgroundTaskStatus", task_id=started["task_id"])
    assert status["status"] == "completed"
    result = await agent.call("getBackgroundTaskResult", task_id=started["task_id"])
    assert result["result"] == {"returncode": 0, "output": "# npm install\n"}
    assert await agent.call("runCommand", command=f"test -e {marker} && echo ok") == {
        "returncode": 0,
        "output": "ok\n",
    }


@pytest.mark.behaviour("F16")
@pytest.mark.scenario("003", "pattern 2")
async def test_the_model_checks_what_is_capable_first(agent: Agent):
    """Whatever is listed can be started by just these names."""
    arguments = {"runCommand": {"command": "true"}, "search": {"text": "a"}, "broken": {}}
    for one in (await agent.call("listBackgroundCapableTools"))["tools"]:
        started = await agent.start(**_names(one), arguments=arguments[one["tool_name"]])
        assert started["success"] is True


@pytest.mark.behaviour("F2")
@pytest.mark.scenario("003", "pattern 3")
async def test_three_suites_run_at_the_same_time(agent: Agent, tmp_path: Path):
    """Each ends only when all three run."""
    meet = "touch {0}/{1}; while [ $(ls {0} | wc -l) -lt 3 ]; do sleep 0.01; done; echo {1}"
    suites = ("npm", "pytest", "go")
    started = await asyncio.gather(*(agent.run(meet.format(tmp_path, suite)) for suite in suites))
    ids = [one["task_id"] for one in started]
    results = await asyncio.gather(*(agent.result(id) for id in ids))
    assert [one["result"]["output"] for one in results] == [f"{suite}\n" for suite in suites]
    assert (await agent.call("listBackgroundTasks"))["count"] == 0


@pytest.mark.behaviour("F5")
@pytest.mark.scenario("003", "pattern 4")
async def test_a_slow_call_answers_auto_backgrounded(mt: Meantime, clock: FakeClock, tmp_path: Path):
    """The same run goes on: it is started once."""
    agent = Agent(mt, dialect=Jaato(BackgroundConfig(background_threshold_seconds=0.2)))
    gate = Gate(tmp_path / "gate")
    command = f"echo ran >> {tmp_path}/runs; {gate.wait}; echo fine"
    calling = asyncio.ensure_future(agent.call("runCommand", command=command))
    await clock.advance_to_alarm(0.2)
    answer = await calling
    id = answer["task_id"]
    assert answer == {
        "auto_backgrounded": True,
        "task_id": id,
        "threshold_seconds": 0.2,
        "message": "Task exceeded 0.2s threshold, continuing in background. "
        f"Use task_id '{id}' to check status.",
    }
    assert (await agent.call("getBackgroundTaskStatus", task_id=id))["status"] == "running"
    await asyncio.to_thread(gate.open)
    assert (await agent.result(id))["result"] == {"returncode": 0, "output": "fine\n"}
    assert (tmp_path / "runs").read_text() == "ran\n"


@pytest.mark.behaviour("F5")
@pytest.mark.scenario("003", "pattern 4")
async def test_a_call_can_ask_for_the_background_itself(agent: Agent):
    for given in ({"command": "echo hi &"}, {"command": "echo hi", "background": True}):
        answer = await agent.call("runCommand", **given)
        assert (answer["success"], answer["tool_name"]) == (True, "runCommand")
        assert (await agent.result(answer["task_id"]))["result"]["output"] == "hi\n"


async def test_an_exit_code_of_a_call_that_is_waited_for_is_its_answer(agent: Agent):
    said = await agent.said("runCommand", command="echo no; exit 3")
    assert (said.code, said.data) == ("task_failed", {"returncode": 3, "output": "no\n"})


async def test_what_a_call_has_said_before_its_timeout_is_in_its_answer(
    agent: Agent, clock: FakeClock, tmp_path: Path
):
    command = f"echo half; touch {tmp_path}/said; sleep 600"
    calling = asyncio.ensure_future(agent.said("runCommand", command=command, timeout_seconds=0.5))
    await until_async((tmp_path / "said").exists, "the command has said it")
    await clock.advance_to_alarm(0.5)
    said = await calling
    assert said.code == "task_timed_out"
    assert said.data == {"error": "The task did not end within 0.5 s.", "output": "half\n"}


# -- the configuration


@pytest.mark.behaviour("M1")
@pytest.mark.scenario("003", "field max_concurrent_tasks")
async def test_max_concurrent_tasks_holds_over_all_plugins_side_by_side(mt: Meantime):
    gate = asyncio.Event()
    config = BackgroundConfig(max_concurrent_tasks=3, background_threshold_seconds=0.2)
    agent = Agent(mt, dialect=Jaato(config), tools={"wait": gate.wait})
    every = [agent.run("sleep 600") for _ in range(4)] + [agent.start("tools", "wait", {}) for _ in range(4)]
    answers = await asyncio.gather(*every)
    assert sum(one["success"] for one in answers) == 3
    refused = {one["error"] for one in answers if not one["success"]}
    assert refused == {"3 of at most 3 background tasks are running. Wait for one to end, or cancel one."}
    await agent.call(
        "cancelBackgroundTask", task_id=next(one["task_id"] for one in answers if one["success"])
    )
    assert (await agent.run("true"))["success"] is True
    gate.set()


@pytest.mark.behaviour("M1", "H24")
@pytest.mark.scenario("003", "field max_concurrent_tasks")
async def test_max_concurrent_tasks_may_be_any_number(mt: Meantime):
    agent = Agent(mt, dialect=Jaato(BackgroundConfig(max_concurrent_tasks=100_000)))
    assert (await agent.run("true"))["success"] is True


@pytest.mark.behaviour("L13", "H24")
@pytest.mark.scenario("003", "field default_timeout_seconds")
async def test_default_timeout_seconds_is_for_tasks_that_name_none(
    mt: Meantime, agent: Agent, clock: FakeClock
):
    id = (await agent.run("sleep 600"))["task_id"]
    assert (await agent.thread.get(id)).run.timeout == 300.0
    short = Agent(mt, dialect=Jaato(BackgroundConfig(default_timeout_seconds=0.05)))
    id = (await short.run("echo half; sleep 600"))["task_id"]
    await clock.advance_to_alarm(0.05)
    answer = await short.result(id)
    assert (answer["status"], answer["error"]) == ("timeout", "The task did not end within 0.05 s.")
    named = await agent.start("cli", "runCommand", {"command": "sleep 600", "timeout_seconds": 70})
    assert (await agent.thread.get(named["task_id"])).run.timeout == 70
    odd = await agent.start("cli", "runCommand", {"command": "true", "timeout_seconds": "soon"})
    assert odd["success"] is False
    for wrong in (0, -2):
        assert (await agent.run("true", timeout_seconds=wrong))["success"] is False


@pytest.mark.behaviour("I14", "H24")
@pytest.mark.scenario("003", "field completed_task_retention_seconds")
async def test_completed_task_retention_seconds_is_how_long_ended_tasks_are_listed():
    clock = FakeClock()
    async with Meantime.open(":memory:", clock=clock) as mt:
        agent = Agent(mt)
        id = (await agent.start("tools", "search", {"text": "a"}))["task_id"]
        await agent.thread.wait(id)
        toolset = Toolset(agent.thread._tasks, agent.toolset._works, "conv-1", "jaato")
        assert f"'{id}' (tools.search) completed" in (await toolset.command("/tasks")).text
        await clock.advance(3601)
        assert (await toolset.command("/tasks")).text == "No background tasks."
        assert (await agent.result(id))["status"] == "completed"  # history still answers by its id


@pytest.mark.behaviour("F5", "H24")
@pytest.mark.scenario("003", "field background_threshold_seconds")
async def test_background_threshold_seconds_is_advice_and_threshold(mt: Meantime, clock: FakeClock):
    """The model is told when to consider the background, and a plain call has so long."""
    agent = Agent(mt, dialect=Jaato(BackgroundConfig(background_threshold_seconds=0.5)))
    assert "typically take >0.5 seconds" in await agent.toolset.guidance()
    calling = asyncio.ensure_future(agent.call("runCommand", command="sleep 600"))
    await clock.advance_to_alarm(0.5)
    assert (await calling)["threshold_seconds"] == 0.5
    never = Agent(mt, dialect=Jaato(BackgroundConfig(background_threshold_seconds=0)))
    assert (await never.call("runCommand", command="sleep 600"))["success"] is True  # nothing is waited for
    patient = Agent(mt, dialect=Jaato(BackgroundConfig(background_threshold_seconds=20)))
    assert "typically take >20 seconds" in await patient.toolset.guidance()
    assert await patient.call("runCommand", command="echo hi") == {"returncode": 0, "output": "hi\n"}


# -- the commands of phase 4


@pytest.mark.behaviour("L9")
async def test_people_see_tasks_and_cancel_them(agent: Agent):
    assert (await agent.toolset.command("/tasks")).text == "No background tasks."
    id = (await agent.run("sleep 600"))["task_id"]
    listed = await agent.toolset.command("/tasks cli")
    assert f"'{id}' (cli.runCommand) running after" in listed.text
    assert (listed.data["count"], listed.data["tasks"][0]["status"]) == (1, "running")
    assert (await agent.toolset.command("/tasks web")).data["count"] == 0
    assert (await agent.toolset.command("/cancel")).text == "Usage: /cancel <task_id>"
    assert (await agent.toolset.command(f"/cancel {id}")).text == f"Task '{id}' is cancelled."
    again = await agent.toolset.command(f"/cancel {id}")
    assert again.text == f"Task '{id}' had ended already: cancelled."
    assert (await agent.result(id))["error"] == "The task was cancelled by user."
    assert (await agent.toolset.command("/cancel no-such")).data == {"error": "Task 'no-such' not found"}


@pytest.mark.behaviour("N7")
async def test_the_reminder_names_what_runs(agent: Agent):
    id = (await agent.run("sleep 600"))["task_id"]
    reminder = await agent.thread.reminder("jaato")
    assert reminder.startswith(f"Background tasks:\n- '{id}' (cli.runCommand) running after ")


def _names(one: dict[str, str]) -> dict[str, str]:
    return {"plugin": one["plugin_name"], "tool": one["tool_name"]}
