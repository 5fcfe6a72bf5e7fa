"""The mcp plugin (seed 003, phase 3): tools of MCP servers, inline or as tasks, with thresholds of their
own by server and by tool."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until

from meantime import InvalidInput, Settings, StdioServer, TaskLost
from meantime.blocking import Meantime
from meantime.plugins import BackgroundCapable, MCPPlugin, PluginRegistry, TaskStatus, ToolExecutor

PEER = Path(__file__).parents[1] / "integrations" / "mcp" / "peers" / "scripted.py"


class Folder:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def lines(self, name: str) -> list[str]:
        file = self.path / name
        return file.read_text().splitlines() if file.exists() else []

    def open_gate(self) -> None:
        (self.path / "gate").touch()

    def wait(self, name: str, line: str = "") -> None:
        """For this line, or for any."""
        until(
            lambda: line in self.lines(name) if line else self.lines(name),
            f"{name} has {line!r}",
            lambda: self.lines(name),
        )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "peer")


@pytest.fixture
def mt(ledger: str, folder: Folder) -> Iterator[Meantime]:
    server = StdioServer(command=[sys.executable, str(PEER), "well", str(folder.path)])
    settings = Settings(stop_grace=0.2, stop_deadline=LIMIT)
    with Meantime.open(ledger, settings=settings, servers={"wiki": server}) as mt:
        yield mt
        folder.open_gate()


@pytest.fixture
def plugin(mt: Meantime, registry: PluginRegistry) -> MCPPlugin:
    plugin = MCPPlugin(mt, "wiki", thresholds={"wiki": LIMIT, "wiki/gate": 0.3, "wiki/echo": None})
    registry.add(plugin)
    return plugin


@pytest.fixture
def executor(registry: PluginRegistry, plugin: MCPPlugin) -> ToolExecutor:
    return ToolExecutor(registry)


def test_it_is_background_capable_and_lists_its_tools(registry: PluginRegistry, plugin: MCPPlugin):
    assert isinstance(plugin, BackgroundCapable)
    listed = {tool.tool_name: tool.threshold_seconds for tool in registry.capable_tools()}
    assert listed["wiki_add"] == LIMIT  # the server's
    assert listed["wiki_gate"] == 0.3  # its own
    assert listed["wiki_echo"] is None  # never by itself
    assert plugin.tools["wiki_echo"].input_schema == {"type": "object"}


def test_quick_is_the_result(executor: ToolExecutor, plugin: MCPPlugin, folder: Folder):
    assert executor.execute("wiki_add", {"a": 1, "b": 2}) == {"sum": 3}
    assert executor.execute("wiki_echo", {"text": "plain"}) == "plain"
    assert plugin.list_tasks() == []
    assert folder.lines("calls") == ["add", "echo"]


def test_slow_goes_on_in_the_background_and_runs_once(
    executor: ToolExecutor, plugin: MCPPlugin, folder: Folder
):
    answer = executor.execute("wiki_gate", {"mark": "m"})
    assert answer["auto_backgrounded"] is True
    assert plugin.get_status(answer["task_id"]) is TaskStatus.RUNNING
    folder.open_gate()
    result = plugin.get_result(answer["task_id"], wait=True)
    assert (result.status, result.result) == (TaskStatus.COMPLETED, "through m")
    assert folder.lines("calls") == ["gate m"]


def test_started_on_purpose(plugin: MCPPlugin, folder: Folder):
    handle = plugin.start_background("wiki_gate", {"mark": "m"}, timeout_seconds=LIMIT)
    assert (handle.plugin_name, handle.tool_name) == ("mcp", "wiki_gate")
    folder.wait("waiting", "m")
    assert [task.task_id for task in plugin.list_tasks()] == [handle.task_id]
    assert plugin.cancel(handle.task_id)
    assert plugin.get_status(handle.task_id) is TaskStatus.CANCELLED
    folder.wait("cancels")


def test_a_failure_of_the_tool_is_its_answer(executor: ToolExecutor, plugin: MCPPlugin):
    assert executor.execute("wiki_fails", {}) == {"error": "the file is not there"}
    handle = plugin.start_background("wiki_fails", {})
    result = plugin.get_result(handle.task_id, wait=True)
    assert result.status is TaskStatus.FAILED
    assert "the file is not there" in (result.error or "")


def test_a_server_that_crashes_raises_for_who_waits(executor: ToolExecutor):
    with pytest.raises(TaskLost, match="ended with exit code 7"):
        executor.execute("wiki_crash", {})
    assert executor.execute("wiki_echo", {"text": "again"}) == "again"


def test_calls_side_by_side_have_one_connection_and_their_own_answers(executor: ToolExecutor, folder: Folder):
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: executor.execute("wiki_echo", {"text": str(n)}), range(64)))
    assert answers == [str(n) for n in range(64)]
    assert len(folder.lines("pids")) == 1


def test_a_tool_that_came_later_is_found_after_a_refresh(
    registry: PluginRegistry, executor: ToolExecutor, plugin: MCPPlugin
):
    executor.execute("wiki_grow", {"new": "fresh"})
    registry.remove("mcp")
    plugin.refresh()
    registry.add(plugin)
    assert executor.execute("wiki_fresh", {"text": "new here"}) == "new here"


def test_bad_input_of_the_plugin_is_refused(mt: Meantime):
    with pytest.raises(InvalidInput, match="needs a server"):
        MCPPlugin(mt)
    with pytest.raises(InvalidInput, match="no MCP server"):
        MCPPlugin(mt, "wikki")
    with pytest.raises(InvalidInput, match="thresholds name what is not there: wiki/gaet"):
        MCPPlugin(mt, "wiki", thresholds={"wiki/gaet": 1.0})
    with pytest.raises(InvalidInput, match="threshold"):
        MCPPlugin(mt, "wiki", thresholds={"wiki": -1.0})
