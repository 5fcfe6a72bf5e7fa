"""The cli plugin, with real commands: `runCommand`, inline or as a task of the shell runner."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until

from gates import open_gate
from meantime import InvalidInput, Settings, TaskFailed, TaskTimedOut
from meantime.blocking import Meantime
from meantime.plugins import CLIPlugin, PluginRegistry, TaskStatus, ToolExecutor
from meantime.testing import FakeClock
from outcomes import unfinished


class Slow:
    """A command that says that it runs, and ends when the test lets it."""

    def __init__(self, folder: Path) -> None:
        self._gate = folder / "gate"
        self.log = folder / "runs"
        os.mkfifo(self._gate)
        self.command = f"echo half; echo ran >> {self.log}; cat {self._gate}; echo fine"

    def let_go(self) -> None:
        open_gate(self._gate, "")

    @property
    def runs(self) -> int:
        return self.log.read_text().count("ran") if self.log.exists() else 0

    def wait_begun(self, count: int = 1) -> None:
        until(lambda: self.runs >= count, f"the command was started {count} times", lambda: self.runs)


@pytest.fixture
def slow(tmp_path: Path) -> Slow:
    return Slow(tmp_path)


@pytest.fixture
def mt(ledger: str, clock: FakeClock) -> Iterator[Meantime]:
    settings = Settings(stop_grace=0.2, on_close="stop")
    with Meantime.open(ledger, clock=clock, settings=settings) as mt:
        yield mt


@pytest.fixture
def cli(registry: PluginRegistry) -> CLIPlugin:
    registry.add(cli := CLIPlugin())
    cli.thresholds = {"runCommand": LIMIT}
    return cli


@pytest.fixture
def executor(registry: PluginRegistry, cli: CLIPlugin) -> ToolExecutor:
    return ToolExecutor(registry)


def run(executor: ToolExecutor, command: str, **more: Any) -> Any:
    return executor.execute("runCommand", {"command": command, **more})


def advance(mt: Meantime, clock: FakeClock, seconds: float) -> None:
    """In the thread of its event loop."""
    mt._portal.call(clock.advance_to_alarm(seconds))  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.behaviour("F3")
def test_a_quick_command_answers_with_output_and_exit_code(
    mt: Meantime, executor: ToolExecutor, tmp_path: Path
):
    """Its output and exit code, whatever that is; nothing is recorded, and no file is left."""
    assert run(executor, "pwd", cwd=str(tmp_path)) == {"returncode": 0, "output": f"{tmp_path}\n"}
    assert run(executor, "echo oops >&2; exit 3") == {"returncode": 3, "output": "oops\n"}
    assert run(executor, "kill -9 $$") == {"returncode": -9, "output": ""}
    assert mt.list("all") == []
    assert not list(tmp_path.glob("work.db.commands/*.state"))


@pytest.mark.behaviour("F3")
def test_the_tool_can_be_called_plainly(cli: CLIPlugin):
    """As any executor of a plugin, by code that knows nothing of the background."""
    tool = cli.get_executors()["runCommand"]
    assert tool({"command": "echo fine"}) == {"returncode": 0, "output": "fine\n"}
    assert tool({"command": "exit 1"}) == {"returncode": 1, "output": ""}


@pytest.mark.behaviour("F3")
def test_much_output_is_cut_to_what_a_model_can_take(executor: ToolExecutor, cli: CLIPlugin):
    """Inline it loses its middle; in the background the whole lies in a file."""
    output = run(executor, "seq 1 300000")["output"]
    assert output.startswith("1\n2\n3\n")
    assert output.endswith("299999\n300000\n")
    assert "characters left out" in output
    assert len(output) < 52_000
    handle = cli.start_background("runCommand", {"command": "seq 1 300000"})
    answer = cli.get_result(handle.task_id, wait=True).result
    assert len(answer["output"]) < 52_000


@pytest.mark.behaviour("F3")
def test_what_a_command_leaves_running_is_told(mt: Meantime, executor: ToolExecutor, cli: CLIPlugin):
    answer = run(executor, "sleep 600 >/dev/null 2>&1 & echo $!")
    assert answer["left_running"] == [int(answer["output"])]
    os.kill(answer["left_running"][0], 9)
    handle = cli.start_background("runCommand", {"command": "sleep 600 >/dev/null 2>&1 & echo $!"})
    assert cli.get_result(handle.task_id, wait=True).result["left_running"]
    assert mt.cancel(handle.task_id).killed == 1


def test_a_task_is_called_by_its_command(mt: Meantime, cli: CLIPlugin):
    handle = cli.start_background("runCommand", {"command": "echo  one;\n echo two"})
    assert mt.get(handle.task_id).title == "echo one; echo two"


@pytest.mark.behaviour("L3")
def test_a_command_that_cannot_be_started_raises(executor: ToolExecutor, tmp_path: Path):
    with pytest.raises(TaskFailed, match="does not exist"):
        run(executor, "true", cwd=str(tmp_path / "nowhere"))


@pytest.mark.behaviour("F5")
def test_a_slow_command_becomes_a_shell_task(
    mt: Meantime, executor: ToolExecutor, cli: CLIPlugin, slow: Slow
):
    """A real one, of the shell runner: the same run goes on, and is never executed again."""
    cli.thresholds = {"runCommand": 0.05}
    answer = run(executor, slow.command)
    id = answer["task_id"]
    assert answer == {
        "auto_backgrounded": True,
        "task_id": id,
        "threshold_seconds": 0.05,
        "message": "Task exceeded 0.05s threshold, continuing in background. "
        f"Use task_id '{id}' to check status.",
    }
    assert mt.get(id).work.kind == "shell"
    assert cli.get_status(id) is TaskStatus.RUNNING
    slow.wait_begun()
    slow.let_go()
    assert cli.get_result(id, wait=True).result == {"returncode": 0, "output": "half\nfine\n"}
    assert slow.runs == 1


@pytest.mark.behaviour("F3")
@pytest.mark.parametrize("how", ["ampersand", "argument"])
def test_a_trailing_ampersand_means_background(executor: ToolExecutor, cli: CLIPlugin, slow: Slow, how: str):
    """At once, in the words of seed 003; the shell never sees the `&`."""
    ampersand = how == "ampersand"
    answer = run(executor, slow.command + (" &" if ampersand else ""), background=not ampersand)
    id = answer["task_id"]
    assert answer == {
        "success": True,
        "task_id": id,
        "plugin_name": "cli",
        "tool_name": "runCommand",
        "estimated_duration_seconds": None,
        "message": f"Task started in background. Use task_id '{id}' to check status.",
    }
    slow.wait_begun()
    assert cli.cancel(id) is True
    result = cli.get_result(id)
    assert (result.status, result.result) == (TaskStatus.CANCELLED, "half\n")


@pytest.mark.behaviour("F3")
def test_an_ampersand_elsewhere_does_not_mean_background(executor: ToolExecutor):
    assert run(executor, "echo 'a &'") == {"returncode": 0, "output": "a &\n"}


@pytest.mark.behaviour("M3")
def test_a_background_start_over_the_limit_is_refused(
    executor: ToolExecutor, registry: PluginRegistry, slow: Slow
):
    registry.config.max_concurrent_tasks = 1
    run(executor, f"{slow.command} &")
    refused = run(executor, "true &")
    assert (refused["success"], "1 of at most 1" in refused["error"]) == (False, True)


@pytest.mark.behaviour("L3")
def test_a_command_that_fails_in_the_background_is_a_failed_task(cli: CLIPlugin):
    handle = cli.start_background("runCommand", {"command": "echo oops; exit 1"})
    result = cli.get_result(handle.task_id, wait=True)
    assert (result.status, result.error) == (TaskStatus.FAILED, "It ended with exit code 1.")
    assert result.result == {"returncode": 1, "output": "oops\n"}


@pytest.mark.breadth
@pytest.mark.behaviour("L13")
def test_a_commands_own_timeout_is_enforced(
    mt: Meantime, clock: FakeClock, executor: ToolExecutor, cli: CLIPlugin, slow: Slow
):
    """Inline it is an error with the output so far; in the background it is a status."""
    with ThreadPoolExecutor() as pool:
        calling = pool.submit(run, executor, slow.command, timeout_seconds=60)
        slow.wait_begun()
        advance(mt, clock, 60)
        with pytest.raises(TaskTimedOut) as problem:
            calling.result(LIMIT)
    assert unfinished(problem.value.task).partial == "half\n"
    handle = cli.start_background("runCommand", {"command": slow.command, "timeout_seconds": 60})
    slow.wait_begun(2)
    advance(mt, clock, 60)
    result = cli.get_result(handle.task_id, wait=True)
    assert (result.status, result.result) == (TaskStatus.TIMEOUT, "half\n")
    with pytest.raises(InvalidInput, match="timeout"):
        run(executor, "true", timeout_seconds=-3)


@pytest.mark.behaviour("F5")
def test_a_person_promotes_a_command(mt: Meantime, executor: ToolExecutor, slow: Slow):
    """Through the runtime, which knows every call; or through the executor."""
    with ThreadPoolExecutor() as pool:
        for count, promote in ((1, mt.promote), (2, executor.promote)):
            waiting = pool.submit(run, executor, slow.command)
            slow.wait_begun(count)
            (call,) = mt.calls()
            promote(call.id)
            answer = waiting.result(LIMIT)
            assert (answer["task_id"], answer["threshold_seconds"]) == (call.id, LIMIT)
            assert "was sent to the background" in answer["message"]


@pytest.mark.behaviour("F14")
def test_durations_of_well_known_commands_are_estimated_as_the_seed_says(cli: CLIPlugin):
    def estimate(command: Any) -> float | None:
        return cli.estimate_duration("runCommand", {"command": command})

    assert estimate("npm install") == estimate("pip install x") == 30.0
    assert estimate("make") == estimate("npm run build") == 60.0
    assert estimate("ls") is estimate(4) is None
    assert CLIPlugin.thresholds == {"runCommand": 10.0}


@pytest.mark.behaviour("F14")
def test_what_was_learned_wins(cli: CLIPlugin):
    handle = cli.start_background("runCommand", {"command": "make --version"})
    cli.get_result(handle.task_id, wait=True)
    assert cli.estimate_duration("runCommand", {"command": "make --version"}) != 60.0


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
def test_bad_arguments_of_run_command_are_refused(
    mt: Meantime, executor: ToolExecutor, cli: CLIPlugin, arguments: dict[str, Any]
):
    """Refused with a word about what is wrong; nothing runs."""
    with pytest.raises(InvalidInput):
        executor.execute("runCommand", arguments)
    assert mt.list("all") == []
