"""The cli plugin. There is a stand-in for the shell runner here: of kind "shell", with scripted commands,
and for `meantime.Shell`, which gives it its orders."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from toolbox import PATIENCE, SETTINGS

import meantime
from meantime import Failed, InvalidInput, Task, TaskFailed, TaskTimedOut
from meantime.blocking import Meantime
from meantime.kernel.model import Work
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import jsonable
from meantime.kernel.work import Order
from meantime.plugins import CLIPlugin, PluginRegistry, TaskStatus, ToolExecutor
from meantime.ports.runner import Abilities, Assignment, Context


class StandInShell:
    def __init__(self, command: str, *, cwd: str | None = None) -> None:
        self.command, self.cwd = command, cwd

    def order(self) -> Order:
        return Order(Work("shell", self.command, {"command": self.command, "cwd": self.cwd}))


class StandInRunner:
    """`true` ends well, `false` does not, `nothing` cannot be started, `wait` waits for the test."""

    kind = "shell"
    abilities = Abilities()

    def __init__(self) -> None:
        self.ran: list[dict[str, Any]] = []
        self.begun = threading.Event()
        self.may_end = threading.Event()

    def check(self, task: Task, assignment: Assignment) -> None: ...

    def can_run(self, task: Task) -> bool:
        return False

    async def exists(self, session: str) -> bool:
        return False

    async def run(self, assignment: Assignment, context: Context) -> Report:
        order = assignment.task.work.input
        self.ran.append(order)
        match order["command"]:
            case "false":
                return Report(error=Failed("exit status 1", "exit", exit_code=1, partial="oops\n"))
            case "nothing":
                return Report(error=Failed("No such file or directory", "not_started"))
            case "wait":
                self.begun.set()
                try:
                    while not self.may_end.is_set():  # noqa: ASYNC110  a gate of threads
                        await asyncio.sleep(0.001)
                except asyncio.CancelledError:
                    return Report(stopped=True, partial="half\n")
        return Report(result=jsonable("fine\n"))


@pytest.fixture
def runner() -> StandInRunner:
    return StandInRunner()


@pytest.fixture
def mt(ledger: str, runner: StandInRunner, monkeypatch: pytest.MonkeyPatch) -> Iterator[Meantime]:
    monkeypatch.setattr(meantime, "Shell", StandInShell, raising=False)
    with Meantime.open(ledger, settings=SETTINGS, runners=[runner]) as mt:
        yield mt
        runner.may_end.set()


@pytest.fixture
def cli(registry: PluginRegistry) -> CLIPlugin:
    registry.add(cli := CLIPlugin())
    return cli


@pytest.fixture
def executor(registry: PluginRegistry, cli: CLIPlugin) -> ToolExecutor:
    return ToolExecutor(registry)


def run(executor: ToolExecutor, command: str, **more: Any) -> Any:
    return executor.execute("runCommand", {"command": command, **more})


def test_F3_a_quick_command(mt: Meantime, executor: ToolExecutor, runner: StandInRunner):
    """Its output and exit code, whatever that is; nothing is recorded."""
    assert run(executor, "true", cwd="/tmp") == {"returncode": 0, "output": "fine\n"}
    assert run(executor, "false") == {"returncode": 1, "output": "oops\n"}
    assert runner.ran[0] == {"command": "true", "cwd": "/tmp"}
    assert mt.list("all") == []


def test_F3_the_tool_can_be_called_plainly(cli: CLIPlugin):
    """As any executor of a plugin, by code that knows nothing of the background."""
    tool = cli.get_executors()["runCommand"]
    assert tool({"command": "true"}) == {"returncode": 0, "output": "fine\n"}
    assert tool({"command": "false"}) == {"returncode": 1, "output": "oops\n"}
    with pytest.raises(TaskFailed, match="No such file"):
        tool({"command": "nothing"})


def test_L3_a_command_that_cannot_be_started_raises(executor: ToolExecutor):
    with pytest.raises(TaskFailed, match="No such file"):
        run(executor, "nothing")


def test_F5_a_slow_command_becomes_a_shell_task(
    mt: Meantime, executor: ToolExecutor, cli: CLIPlugin, runner: StandInRunner
):
    """A real one, of the shell runner, with the permission to prove it."""
    cli.thresholds = {"runCommand": 0.01}
    answer = run(executor, "wait")
    id = answer["task_id"]
    assert answer == {
        "auto_backgrounded": True,
        "task_id": id,
        "threshold_seconds": 0.01,
        "message": "Task exceeded 0.01s threshold, continuing in background. "
        f"Use task_id '{id}' to check status.",
    }
    assert mt.get(id).work.kind == "shell"
    assert cli.get_status(id) is TaskStatus.RUNNING
    runner.may_end.set()
    assert cli.get_result(id, wait=True).result == {"returncode": 0, "output": "fine\n"}
    assert len(runner.ran) == 1


@pytest.mark.parametrize(
    "arguments", [{"command": "wait &"}, {"command": "wait", "background": True}], ids=str
)
def test_F3_a_trailing_ampersand_means_background(
    executor: ToolExecutor, cli: CLIPlugin, runner: StandInRunner, arguments: dict[str, Any]
):
    """At once, in the words of seed 003; the shell never sees the `&`."""
    answer = executor.execute("runCommand", arguments)
    id = answer["task_id"]
    assert answer == {
        "success": True,
        "task_id": id,
        "plugin_name": "cli",
        "tool_name": "runCommand",
        "estimated_duration_seconds": None,
        "message": f"Task started in background. Use task_id '{id}' to check status.",
    }
    assert runner.begun.wait(PATIENCE)
    assert runner.ran == [{"command": "wait", "cwd": None}]
    assert cli.cancel(id) is True
    result = cli.get_result(id)
    assert (result.status, result.result) == (TaskStatus.CANCELLED, "half\n")


def test_F3_an_ampersand_elsewhere_does_not(executor: ToolExecutor, runner: StandInRunner):
    assert run(executor, "echo 'a &'")["returncode"] == 0
    assert runner.ran[0]["command"] == "echo 'a &'"


def test_M3_a_background_start_that_is_refused(
    executor: ToolExecutor, registry: PluginRegistry, runner: StandInRunner
):
    registry.config.max_concurrent_tasks = 1
    run(executor, "wait &")
    refused = run(executor, "wait &")
    assert (refused["success"], "1 of at most 1" in refused["error"]) == (False, True)


def test_L3_a_failed_command_in_the_background(cli: CLIPlugin):
    handle = cli.start_background("runCommand", {"command": "false"})
    result = cli.get_result(handle.task_id, wait=True)
    assert (result.status, result.error) == (TaskStatus.FAILED, "exit status 1")
    assert result.result == {"returncode": 1, "output": "oops\n"}


def test_L13_a_commands_own_timeout(executor: ToolExecutor, cli: CLIPlugin):
    """Inline it is an error with the output so far; in the background it is a status."""
    with pytest.raises(TaskTimedOut) as problem:
        run(executor, "wait", timeout_seconds=0.01)
    assert problem.value.task.outcome.partial == "half\n"
    handle = cli.start_background("runCommand", {"command": "wait", "timeout_seconds": 0.01})
    result = cli.get_result(handle.task_id, wait=True)
    assert (result.status, result.result) == (TaskStatus.TIMEOUT, "half\n")
    with pytest.raises(InvalidInput, match="timeout"):
        run(executor, "true", timeout_seconds=-3)


def test_F5_a_person_promotes_a_command(
    mt: Meantime, executor: ToolExecutor, cli: CLIPlugin, runner: StandInRunner
):
    """Through the runtime, which knows every call; or through the executor."""
    with ThreadPoolExecutor() as pool:
        for promote in (mt.promote, executor.promote):
            runner.begun.clear()
            waiting = pool.submit(run, executor, "wait")
            assert runner.begun.wait(PATIENCE)
            (call,) = mt.calls()
            promote(call.id)
            answer = waiting.result(PATIENCE)
            assert (answer["task_id"], answer["threshold_seconds"]) == (call.id, 10.0)
            assert "was sent to the background" in answer["message"]


def test_F14_the_seeds_rules(cli: CLIPlugin):
    def estimate(command: Any) -> float | None:
        return cli.estimate_duration("runCommand", {"command": command})

    assert estimate("npm install") == estimate("pip install x") == 30.0
    assert estimate("make") == estimate("npm run build") == 60.0
    assert estimate("ls") is estimate(4) is None
    assert cli.get_auto_background_threshold("runCommand") == 10.0


def test_F14_what_was_learned_wins(cli: CLIPlugin):
    handle = cli.start_background("runCommand", {"command": "make true"})
    cli.get_result(handle.task_id, wait=True)
    assert cli.estimate_duration("runCommand", {"command": "make true"}) < 20


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"command": ""},
        {"command": "  "},
        {"command": ["ls"]},
        {"command": "ls", "shell": True},
        {"command": "ls", "background": "yes"},
    ],
    ids=str,
)
def test_bad_arguments(
    mt: Meantime, executor: ToolExecutor, cli: CLIPlugin, runner: StandInRunner, arguments: dict[str, Any]
):
    """Refused with a word about what is wrong; nothing runs."""
    with pytest.raises(InvalidInput):
        executor.execute("runCommand", arguments)
    assert (runner.ran, mt.list("all")) == ([], [])
