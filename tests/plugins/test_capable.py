"""RunsInBackground: any tool plugin gets the whole protocol, on our runtime."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT
from toolbox import DEAF, SETTINGS, Files

from meantime import Call, Closed, NotInWork, current
from meantime.blocking import Meantime
from meantime.plugins import (
    BackgroundConfig,
    BackgroundPlugin,
    PluginRegistry,
    RunsInBackground,
    TaskStatus,
    ToolExecutor,
)
from meantime.testing import FakeClock


@pytest.mark.behaviour("F2")
def test_a_tool_is_started_by_name_and_arguments(mt: Meantime, files: Files):
    """It returns at once; later its result is there."""
    handle = files.start_background("slow", {"value": 7})
    assert (handle.plugin_name, handle.tool_name) == ("files", "slow")
    assert abs((datetime.now() - handle.created_at).total_seconds()) < LIMIT
    files.gate.wait_begun()
    assert files.get_status(handle.task_id) is TaskStatus.RUNNING
    assert files.get_result(handle.task_id).status is TaskStatus.RUNNING

    files.gate.open()
    result = files.get_result(handle.task_id, wait=True)
    assert (result.status, result.result, result.error) == (TaskStatus.COMPLETED, 7, None)
    assert result.completed_at >= result.started_at  # pyright: ignore[reportOperatorIssue]
    assert result.duration_seconds >= 0
    assert mt.get(handle.task_id).meta["plugin"] == "files"
    assert files.gate.executions == 1


@pytest.mark.behaviour("F14")
@pytest.mark.scenario("003", "tool listBackgroundTasks")
def test_the_list_of_tasks_keeps_the_estimate_of_the_start(registry: PluginRegistry):
    class Guessing(Files):
        name = "guessing"  # pyright: ignore[reportAssignmentType]

        def guess_duration(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
            return 30.0

    plugin = Guessing()
    registry.add(plugin)
    handle = plugin.start_background("slow", {"value": 7})
    plugin.gate.wait_begun()
    assert handle.estimated_duration_seconds == 30.0
    background = BackgroundPlugin()
    background.set_registry(registry)
    shown = background.get_executors()["listBackgroundTasks"]({"plugin_name": "guessing"})["tasks"]
    assert [one["estimated_duration_seconds"] for one in shown] == [30.0]
    assert [one.estimated_duration_seconds for one in plugin.list_tasks()] == [30.0]
    plugin.gate.open()
    plugin.get_result(handle.task_id, wait=True)


def test_an_estimate_that_cannot_be_made_does_not_keep_a_tool_from_running(
    files: Files, monkeypatch: pytest.MonkeyPatch
):
    def broken(*given: object) -> float:
        raise ZeroDivisionError

    monkeypatch.setattr(files, "estimate_duration", broken)
    files.gate.open()
    handle = files.start_background("slow", {"value": 7})
    assert files.get_result(handle.task_id, wait=True).result == 7


class Office(RunsInBackground):
    """A plugin whose own methods have the names that come to mind first."""

    name = "office"

    def get_executors(self) -> dict[str, Any]:
        return {"work": self.work, "present": self.present}

    def work(self, arguments: dict[str, Any]) -> str:
        return f"worked on {arguments['on']}"

    def present(self, arguments: dict[str, Any]) -> str:
        return f"presented {arguments['what']}"

    def describe(self) -> str:
        return "an office"

    def options(self) -> list[str]:
        return ["coffee"]

    def attach(self) -> str:
        return "a file"


@pytest.mark.behaviour("F15")
def test_a_plugins_own_work_and_present_are_not_hooks_of_the_mixin(registry: PluginRegistry):
    office = Office()
    registry.add(office)
    executor = ToolExecutor(registry)
    assert executor.execute("work", {"on": "it"}) == "worked on it"
    handle = office.start_background("present", {"what": "slides"})
    assert office.get_result(handle.task_id, wait=True).result == "presented slides"
    assert (office.describe(), office.options(), office.attach()) == ("an office", ["coffee"], "a file")


@pytest.mark.behaviour("F15")
def test_current_works_in_a_foreground_tool_without_a_threshold(registry: PluginRegistry):
    class Desk(RunsInBackground):
        name = "desk"
        thresholds = {"look": None}  # noqa: RUF012  as a plugin's author writes it

        def get_executors(self) -> dict[str, Any]:
            return {"look": self.look}

        def look(self, arguments: dict[str, Any]) -> tuple[str, bool]:
            current().progress(50, "half")
            return current().thread, current().cancelled

    registry.add(Desk())
    assert ToolExecutor(registry).execute("look", {}) == ("conv-1", False)
    with pytest.raises(NotInWork):
        current()


@pytest.mark.behaviour("F2")
def test_an_async_tool_is_started_by_name_and_arguments(files: Files):
    handle = files.start_background("slow_async", {})
    files.gate.wait_begun()
    files.gate.open()
    assert files.get_result(handle.task_id, wait=True).result == "done"


@pytest.mark.behaviour("F15", "R20")
def test_the_errors_are_those_of_the_protocol(files: Files, registry: PluginRegistry):
    files.background_tools = {"slow"}
    with pytest.raises(ValueError, match="Tool 'quick' in plugin 'files' does not support background"):
        files.start_background("quick", {})
    with pytest.raises(ValueError, match="does not support background"):
        files.start_background("unknown", {})
    with pytest.raises(ValueError, match="arguments are a dict, not str"):
        files.start_background("slow", "make")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="timeout"):
        files.start_background("slow", {}, timeout_seconds=-5)
    unknown: Any
    for unknown in ("nobody", "", "../etc", None, 4):
        for verb in (files.get_status, files.get_result, files.cancel):
            with pytest.raises(KeyError):
                verb(unknown)


@pytest.mark.behaviour("I9")
def test_a_plugin_sees_only_its_own_tasks(mt: Meantime, registry: PluginRegistry, files: Files):
    """Not its neighbour's, not the conversation's others; and a prefix of an id is no id."""
    other = Files("other", prefix="o_")
    registry.add(other)
    handle = other.start_background("o_slow", {})
    plain = mt.thread("conv-1").start(Call(len, ""))
    for id in (handle.task_id, plain.id):
        with pytest.raises(KeyError):
            files.get_status(id)
    with pytest.raises(KeyError):
        other.get_status(handle.task_id[:6])
    assert files.list_tasks() == []
    assert [task.task_id for task in other.list_tasks()] == [handle.task_id]
    other.gate.open()
    other.get_result(handle.task_id, wait=True)
    assert other.list_tasks() == []


@pytest.mark.behaviour("L3")
def test_a_tool_that_raises_has_failed(files: Files):
    handle = files.start_background("fails", {})
    result = files.get_result(handle.task_id, wait=True)
    assert (result.status, result.error) == (TaskStatus.FAILED, "ValueError: no such file")


@pytest.mark.behaviour("L3")
@pytest.mark.parametrize("problem", [SystemExit(1), KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_a_tool_may_raise_anything_and_only_its_task_fails(files: Files, problem: BaseException):
    """Nothing hangs, and nothing but the task is hurt."""
    files.raises = problem
    handle = files.start_background("fails", {})
    assert files.get_result(handle.task_id, wait=True).status is TaskStatus.FAILED
    assert files.get_result(files.start_background("quick", {}).task_id, wait=True).result == "done"


@pytest.mark.behaviour("L2")
def test_a_result_that_is_not_json_is_kept_as_text(files: Files):
    files.returns = {1, 2}
    handle = files.start_background("quick", {})
    assert sorted(files.get_result(handle.task_id, wait=True).result) == [1, 2]  # pyright: ignore[reportArgumentType]
    files.returns = threading.Lock()
    handle = files.start_background("quick", {})
    assert "lock" in str(files.get_result(handle.task_id, wait=True).result)


@pytest.mark.behaviour("N17")
def test_a_big_result_comes_whole(files: Files):
    handle = files.start_background("quick", {"value": "x" * 100_000})
    assert len(files.get_result(handle.task_id, wait=True).result) == 100_000  # pyright: ignore[reportArgumentType]


@pytest.mark.behaviour("L6")
def test_cancel_waits_for_the_ending(files: Files):
    """A tool that looks is cancelled: True. Asking again, or after the ending, is True as well."""
    handle = files.start_background("polite", {})
    files.gate.wait_begun()
    assert files.cancel(handle.task_id) is True
    result = files.get_result(handle.task_id)
    assert (result.status, result.result) == (TaskStatus.CANCELLED, "half of it")
    assert files.cancel(handle.task_id) is True


class TestDeaf:
    @pytest.fixture
    def mt(self, ledger: str) -> Iterator[Meantime]:
        with Meantime.open(ledger, settings=DEAF) as mt:
            yield mt

    @pytest.mark.behaviour("L6")
    def test_a_tool_that_cannot_be_stopped_is_left_behind(self, files: Files):
        """False, and the ending says that it was left behind. It never becomes completed later."""
        handle = files.start_background("slow", {})
        files.gate.wait_begun()
        assert files.cancel(handle.task_id) is False
        files.gate.open()
        result = files.get_result(handle.task_id, wait=True)
        assert result.status is TaskStatus.CANCELLED
        assert "left behind" in str(result.error)


@pytest.mark.behaviour("L13")
def test_a_timeout_is_enforced(files: Files, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("meantime.runtime.run.LOOK", LIMIT)
    handle = files.start_background("polite", {}, timeout_seconds=0.01)
    result = files.get_result(handle.task_id, wait=True)
    assert (result.status, result.result) == (TaskStatus.TIMEOUT, "half of it")
    assert "0.01 s" in str(result.error)


class TestWithDefaultTimeout:
    @pytest.fixture
    def config(self) -> BackgroundConfig:
        return BackgroundConfig(default_timeout_seconds=0.01)

    @pytest.mark.behaviour("L13")
    @pytest.mark.scenario("003", "field default_timeout_seconds")
    def test_the_default_is_for_tasks_that_name_none(self, mt: Meantime, files: Files):
        handle = files.start_background("polite", {})
        assert files.get_result(handle.task_id, wait=True).status is TaskStatus.TIMEOUT
        named = files.start_background("quick", {}, timeout_seconds=60)
        assert mt.get(named.task_id).run.timeout == 60


@pytest.mark.behaviour("F5")
def test_a_running_future_is_registered(files: Files):
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    handle = files.register_running_task(future, "slow", {"a": 1})
    assert files.get_status(handle.task_id) is TaskStatus.RUNNING
    assert [task.task_id for task in files.list_tasks()] == [handle.task_id]
    future.set_result("at last")
    assert files.get_result(handle.task_id, wait=True).result == "at last"
    with pytest.raises(ValueError, match="adopt takes a future"):
        files.register_running_task("future", "slow", {})  # pyright: ignore[reportArgumentType]


@pytest.mark.behaviour("I14")
def test_cleaned_up_tasks_are_gone(mt: Meantime, files: Files):
    """For the plugin: the ledger still has its history."""
    ended = [files.start_background("quick", {}).task_id for _ in range(30)]
    for id in ended:
        files.get_result(id, wait=True)
    running = files.start_background("slow", {})
    assert files.cleanup_completed() == 0  # none is an hour old
    assert files.cleanup_completed(max_age_seconds=0) == 30
    assert files.cleanup_completed(max_age_seconds=0) == 0
    for id in ended:
        with pytest.raises(KeyError):
            files.get_status(id)
    assert files.get_status(running.task_id) is not TaskStatus.COMPLETED
    assert mt.get(ended[0]).status == "completed"
    with pytest.raises(ValueError, match="not an age"):
        files.cleanup_completed(-1)


@pytest.mark.behaviour("I14")
@pytest.mark.scenario("003", "field completed_task_retention_seconds")
def test_retention_goes_by_the_runtimes_clock(ledger: str):
    """On its own, at the very second, and not before."""
    clock = FakeClock()
    with Meantime.open(ledger, clock=clock) as mt:
        registry = PluginRegistry(mt, "conv-1", BackgroundConfig(completed_task_retention_seconds=60))
        files = Files()
        registry.add(files)
        handle = files.start_background("quick", {})
        files.get_result(handle.task_id, wait=True)
        clock.jump(59)
        assert files.get_status(handle.task_id) is TaskStatus.COMPLETED
        clock.jump(1)
        for verb in (files.get_status, files.get_result, files.cancel):
            with pytest.raises(KeyError):
                verb(handle.task_id)
        assert mt.thread("conv-1").list("all") == []

        unseen = files.start_background("quick", {"value": 1})
        files.get_result(unseen.task_id, wait=True)
        clock.jump(60)
        files.get_result(files.start_background("quick", {"value": 2}).task_id, wait=True)
        assert len(mt.thread("conv-1").list("all")) == 1  # nobody had to look at the old one


@pytest.mark.behaviour("L27")
def test_tasks_answer_after_a_restart(tmp_path: Path):
    """All state is in the ledger; a new plugin object finds it."""
    with Meantime.open(tmp_path / "work.db", settings=SETTINGS) as mt:
        registry = PluginRegistry(mt, "conv-1")
        registry.add(files := Files())
        done = files.start_background("quick", {})
        files.get_result(done.task_id, wait=True)
    with Meantime.open(tmp_path / "work.db", settings=SETTINGS) as mt:
        registry = PluginRegistry(mt, "conv-1")
        registry.add(files := Files())
        assert files.get_result(done.task_id).result == "done"


def test_a_plugin_in_no_registry_says_so():
    files = Files()
    for verb in (lambda: files.start_background("slow", {}), files.list_tasks, lambda: files.get_status("x")):
        with pytest.raises(RuntimeError, match=r"in no registry. Add it"):
            verb()


def test_a_plugin_works_in_one_registry_at_a_time(mt: Meantime, registry: PluginRegistry, files: Files):
    other = PluginRegistry(mt, "conv-2")
    with pytest.raises(ValueError, match="in another registry"):
        other.add(files)
    registry.remove("files")
    other.add(files)
    assert files.get_result(files.start_background("quick", {}).task_id, wait=True).result == "done"


def test_a_runtime_that_is_closed_starts_nothing(ledger: str):
    with Meantime.open(ledger) as mt:
        registry = PluginRegistry(mt, "conv-1")
        registry.add(files := Files())
    with pytest.raises(RuntimeError, match="closed"):
        files.start_background("quick", {})
    with pytest.raises(Closed):
        files.get_status("t_x")


def test_works_from_any_thread(files: Files):
    with ThreadPoolExecutor(8) as pool:
        handles = list(pool.map(lambda n: files.start_background("quick", {"value": n}), range(10)))
        results = list(pool.map(lambda handle: files.get_result(handle.task_id, wait=True), handles))
    assert [result.result for result in results] == list(range(10))


@pytest.mark.behaviour("F5")
def test_thresholds_are_per_tool(files: Files, config: BackgroundConfig):
    """Named ones first, then the config's; None disables."""
    files.background_tools = {"slow", "quick", "never"}
    thresholds = {name: files.get_auto_background_threshold(name) for name in files.get_executors()}
    assert thresholds == {
        "quick": config.background_threshold_seconds,
        "slow": 0.01,
        "polite": None,
        "fails": None,
        "never": None,
        "quick_async": None,
        "slow_async": None,
    }


def test_methods_can_be_overridden(registry: PluginRegistry):
    class Picky(RunsInBackground):
        name = "picky"

        def get_executors(self):
            return {"a": len, "b": len}

        def supports_background(self, tool_name: str) -> bool:
            return tool_name == "a"

        def get_auto_background_threshold(self, tool_name: str) -> float | None:
            return 3

        def guess_duration(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
            return 12.5

    registry.add(picky := Picky())
    assert picky.estimate_duration("a", {}) == 12.5
    with pytest.raises(ValueError, match="does not support"):
        picky.start_background("b", {})
