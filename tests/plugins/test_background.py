"""BackgroundPlugin (seed 003, component 2): the seed's own names, on real plugins, commands and tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.waiting import LIMIT
from toolbox import DEAF, Files, Foreign

from meantime import Settings, Shell
from meantime.blocking import Meantime
from meantime.dialects.jaato import declarations
from meantime.plugins import (
    BackgroundConfig,
    BackgroundPlugin,
    CLIPlugin,
    Decision,
    PluginRegistry,
    ToolExecutor,
    create_plugin,
)


@pytest.fixture
def mt(ledger: str) -> Iterator[Meantime]:
    with Meantime.open(ledger, settings=Settings(stop_grace=0.2, stop_deadline=LIMIT, on_close="stop")) as mt:
        yield mt


@pytest.fixture
def background(registry: PluginRegistry, files: Files) -> BackgroundPlugin:
    registry.add(CLIPlugin())
    registry.add(plugin := create_plugin())
    return plugin


@pytest.fixture
def tools(background: BackgroundPlugin) -> Any:
    """Its executors, as a client calls them."""
    return background.get_executors()


def start(tools: Any, plugin: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return tools["startBackgroundTask"]({"plugin_name": plugin, "tool_name": tool, "arguments": arguments})


def test_it_is_a_plugin_by_the_seeds_names(registry: PluginRegistry, background: BackgroundPlugin):
    assert registry.get_plugin("background") is background
    assert registry.get_plugin("nothing") is None
    assert registry.list_exposed() == ["files", "cli", "background"]
    assert "background" not in registry.capable_plugins
    assert background.get_function_declarations() == declarations()
    names = [one["name"] for one in background.get_function_declarations()]
    assert list(background.get_executors()) == names
    assert set(background.get_auto_approved_tools()) < set(names)


def test_it_starts_tools_and_commands(tools: Any, files: Files):
    answer = start(tools, "files", "slow", value=7)
    id = answer.pop("task_id")
    assert answer == {
        "success": True,
        "plugin_name": "files",
        "tool_name": "slow",
        "estimated_duration_seconds": None,
        "message": f"Task started in background. Use task_id '{id}' to check status.",
    }
    assert tools["getBackgroundTaskStatus"]({"task_id": id}) == {
        "task_id": id,
        "plugin_name": "files",
        "status": "running",
    }
    files.gate.open()
    result = tools["getBackgroundTaskResult"]({"task_id": id, "wait": True})
    assert result.pop("duration_seconds") >= 0
    assert result == {
        "task_id": id,
        "plugin_name": "files",
        "status": "completed",
        "result": 7,
        "error": None,
    }
    made = start(tools, "cli", "runCommand", command="echo hi")
    assert tools["getBackgroundTaskResult"]({"task_id": made["task_id"], "wait": True})["result"] == {
        "returncode": 0,
        "output": "hi\n",
    }


def test_what_is_not_capable_is_said_in_the_seeds_words(tools: Any, files: Files):
    assert start(tools, "web", "fetch") == {
        "success": False,
        "error": "Plugin 'web' does not support background execution. Capable plugins: ['files', 'cli']",
    }
    assert start(tools, "files", "nothing") == {
        "success": False,
        "error": "Tool 'nothing' in plugin 'files' does not support background execution",
    }
    for name in ("getBackgroundTaskStatus", "getBackgroundTaskResult", "cancelBackgroundTask"):
        assert tools[name]({"task_id": "x"}) == {"error": "Task 'x' not found"}
        assert "missing required field `task_id`" in tools[name]({})["error"]
    assert tools["startBackgroundTask"]({})["success"] is False


def test_arguments_may_be_left_out(tools: Any, files: Files):
    assert tools["startBackgroundTask"]({"plugin_name": "files", "tool_name": "quick"})["success"] is True


def test_a_cancel_waits_for_the_ending(tools: Any, files: Files):
    id = start(tools, "files", "polite")["task_id"]
    files.gate.wait_begun()
    assert tools["cancelBackgroundTask"]({"task_id": id}) == {"task_id": id, "cancelled": True}
    assert tools["getBackgroundTaskStatus"]({"task_id": id})["status"] == "cancelled"


class TestDeaf:
    @pytest.fixture
    def mt(self, ledger: str) -> Iterator[Meantime]:
        with Meantime.open(ledger, settings=DEAF) as mt:
            yield mt

    def test_a_cancel_says_that_a_tool_would_not_stop(
        self, background: BackgroundPlugin, tools: Any, files: Files
    ):
        first, second = (start(tools, "files", "slow")["task_id"] for _ in range(2))
        assert tools["cancelBackgroundTask"]({"task_id": first}) == {"task_id": first, "cancelled": False}
        said = background.get_user_commands()[1].run(second)
        assert said == f"Task '{second}' would not stop and was left behind."


def test_it_lists_what_is_active_and_what_is_capable(tools: Any, files: Files):
    first, second = (
        start(tools, "files", "slow")["task_id"],
        start(tools, "cli", "runCommand", command="sleep 600")["task_id"],
    )
    listed = tools["listBackgroundTasks"]({})
    assert ([one["task_id"] for one in listed["tasks"]], listed["count"]) == ([first, second], 2)
    assert list(listed["tasks"][0]) == [
        "task_id",
        "plugin_name",
        "tool_name",
        "created_at",
        "estimated_duration_seconds",
    ]
    assert tools["listBackgroundTasks"]({"plugin_name": "cli"})["count"] == 1
    capable = tools["listBackgroundCapableTools"]({})
    assert {"plugin_name": "cli", "tool_name": "runCommand"} in capable["tools"]
    assert capable["count"] == len(capable["tools"]) == 8


@pytest.mark.behaviour("F18")
def test_the_permission_of_the_executor_is_asked_for_the_tool_itself(
    registry: PluginRegistry, background: BackgroundPlugin
):
    def check(name: str, arguments: dict[str, Any]) -> Decision:
        return Decision(name != "runCommand", "no commands today", "policy")

    executor = ToolExecutor(registry, permission=check)
    order = {"plugin_name": "cli", "tool_name": "runCommand", "arguments": {"command": "true"}}
    assert executor.execute("startBackgroundTask", order) == {
        "success": False,
        "error": "Permission denied for tool 'runCommand': no commands today",
    }
    order = {"plugin_name": "files", "tool_name": "quick", "arguments": {}}
    started = executor.execute("startBackgroundTask", order)
    assert started["success"] is True
    kept = registry.workshop.thread.get(started["task_id"]).meta["permission"]
    assert (kept["allowed"], kept["by"]) == (True, "policy")


class TestLimits:
    @pytest.fixture
    def config(self) -> BackgroundConfig:
        return BackgroundConfig(max_concurrent_tasks=1, background_threshold_seconds=30)

    @pytest.mark.behaviour("M3")
    def test_a_start_over_the_limit_is_refused_and_says_so(self, tools: Any, files: Files):
        assert start(tools, "files", "slow")["success"] is True
        refused = start(tools, "cli", "runCommand", command="true")
        assert refused["success"] is False
        assert refused["error"].startswith("1 of at most 1 background tasks are running.")

    @pytest.mark.behaviour("H23")
    @pytest.mark.scenario("003", "field background_threshold_seconds")
    def test_the_threshold_is_in_the_instructions(self, background: BackgroundPlugin):
        assert "typically take >30 seconds" in background.get_system_instructions()


def test_the_instructions_speak_of_auto_backgrounding_where_there_is_some(
    background: BackgroundPlugin, config: BackgroundConfig
):
    alone = BackgroundPlugin()
    config.background_threshold_seconds = BackgroundConfig().background_threshold_seconds
    assert "auto_backgrounded" not in alone.get_system_instructions()
    with_plugins = background.get_system_instructions()
    assert with_plugins.startswith(alone.get_system_instructions())
    assert "auto_backgrounded" in with_plugins


def test_people_have_tasks_and_cancel(background: BackgroundPlugin, tools: Any, files: Files):
    tasks, cancel = background.get_user_commands()
    assert (tasks.name, cancel.name) == ("tasks", "cancel")
    assert tasks.run("") == "No background tasks."
    id = start(tools, "cli", "runCommand", command="sleep 600")["task_id"]
    assert tasks.run("cli") == f"- '{id}' (cli.runCommand) running"
    assert cancel.run("") == "Usage: /cancel <task_id>"
    assert cancel.run(id) == f"Task '{id}' is cancelled."
    assert cancel.run("x") == "Task 'x' not found"


@pytest.mark.behaviour("H22")
def test_the_dialect_calls_tasks_of_plugins_by_their_own_names(mt: Meantime, tools: Any, files: Files):
    """And what it starts as cli, the plugin of that name knows."""
    toolset = mt.thread("conv-1").toolset("jaato", commands=Shell, agents=None)
    id = start(tools, "files", "slow")["task_id"]
    (listed,) = toolset.call("listBackgroundTasks").data["tasks"]
    assert (listed["task_id"], listed["plugin_name"], listed["tool_name"]) == (id, "files", "slow")
    order = {"plugin_name": "cli", "tool_name": "runCommand", "arguments": {"command": "echo hi"}}
    started = toolset.call("startBackgroundTask", order).data
    answer = tools["getBackgroundTaskResult"]({"task_id": started["task_id"], "wait": True})
    assert answer["result"] == {"returncode": 0, "output": "hi\n"}
    assert answer == toolset.call("getBackgroundTaskResult", {"task_id": started["task_id"]}).data


def test_a_shutdown_hides_what_has_ended(background: BackgroundPlugin, tools: Any, files: Files):
    id = start(tools, "files", "quick")["task_id"]
    tools["getBackgroundTaskResult"]({"task_id": id, "wait": True})
    background.shutdown()
    assert tools["getBackgroundTaskStatus"]({"task_id": id}) == {"error": f"Task '{id}' not found"}


class TheirRegistry:
    """A registry that is not ours: the seed's two methods, and nothing else."""

    def __init__(self, **plugins: Any) -> None:
        self._plugins = plugins

    def list_exposed(self) -> list[str]:
        return list(self._plugins)

    def get_plugin(self, name: str) -> Any:
        return self._plugins[name]


def test_it_works_with_plugins_and_a_registry_that_are_not_ours(mt: Meantime):
    background = BackgroundPlugin()
    background.set_registry(TheirRegistry(foreign=Foreign(), plain=object()))
    tools = background.get_executors()
    assert start(tools, "foreign", "lookup")["task_id"] == "foreign-0"
    assert tools["listBackgroundCapableTools"]({}) == {
        "tools": [{"plugin_name": "foreign", "tool_name": "lookup"}],
        "count": 1,
    }
    assert tools["cancelBackgroundTask"]({"task_id": "foreign-0"})["cancelled"] is False
    background.shutdown()


def test_without_a_registry_nothing_is_capable():
    tools = BackgroundPlugin().get_executors()
    assert start(tools, "cli", "runCommand", command="true")["error"].endswith("Capable plugins: []")
    assert tools["listBackgroundTasks"]({}) == {"tasks": [], "count": 0}
