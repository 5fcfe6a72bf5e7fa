"""M1 and M2: max_concurrent_tasks holds over all plugins of a registry, whoever starts, however it ends."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.waiting import LIMIT
from toolbox import Files, Foreign

from meantime import LedgerError
from meantime.blocking import Meantime
from meantime.plugins import BackgroundConfig, PluginRegistry, TaskStatus, ToolExecutor


@pytest.fixture
def config() -> BackgroundConfig:
    return BackgroundConfig(max_concurrent_tasks=3)


@pytest.fixture
def other(registry: PluginRegistry) -> Iterator[Files]:
    plugin = Files("other", prefix="o_")
    registry.add(plugin)
    yield plugin
    plugin.gate.open()


@pytest.mark.behaviour("M3")
@pytest.mark.scenario("003", "field max_concurrent_tasks")
def test_a_refusal_says_how_many_run_and_what_to_do(files: Files, other: Files):
    """Over all plugins together; the next ending makes room."""
    first = files.start_background("slow", {})
    for _ in range(2):
        other.start_background("o_slow", {})
    for refused in (files, other):
        tool = "slow" if refused is files else "o_slow"
        with pytest.raises(RuntimeError, match=r"3 of at most 3 .* Wait for one to end, cancel one"):
            refused.start_background(tool, {})
    files.gate.open()
    files.get_result(first.task_id, wait=True)
    assert files.start_background("slow", {})
    other.gate.open()


@pytest.mark.behaviour("M2")
def test_many_threads_race_for_three_places(files: Files):
    """Exactly three win, each time; every ending frees its place."""
    barrier = threading.Barrier(16)

    def start(_: int) -> Any:
        barrier.wait(LIMIT)
        try:
            return files.start_background("slow", {}).task_id
        except RuntimeError:
            return None

    for _ in range(3):
        files.gate.__init__()
        with ThreadPoolExecutor(16) as pool:
            won = [id for id in pool.map(start, range(16)) if id is not None]
        assert len(won) == 3
        files.gate.open()
        for id in won:
            assert files.get_result(id, wait=True).status is TaskStatus.COMPLETED


@pytest.mark.behaviour("M2")
@pytest.mark.parametrize("tool", ["quick", "fails", "polite", "slow"])
def test_every_ending_frees_its_place(files: Files, tool: str, monkeypatch: pytest.MonkeyPatch):
    """Completed, failed, cancelled, timed out, left behind."""
    monkeypatch.setattr("meantime.runtime.run.LOOK", 0.01)
    for _ in range(10):
        handle = files.start_background(tool, {}, timeout_seconds=0.01)
        files.get_result(handle.task_id, wait=True)
    assert files.list_tasks() == []


@pytest.mark.behaviour("M2")
def test_a_start_that_fails_takes_no_place(mt: Meantime, files: Files, monkeypatch: pytest.MonkeyPatch):
    def broken(change: object) -> None:
        raise LedgerError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(mt._target._runtime.store, "commit", broken)  # pyright: ignore[reportAttributeAccessIssue]
        for _ in range(10):
            with pytest.raises(RuntimeError, match="the disk is gone"):
                files.start_background("slow", {})
            with pytest.raises(ValueError, match="timeout"):
                files.start_background("slow", {}, timeout_seconds=0)
    for _ in range(3):
        files.start_background("slow", {})


@pytest.mark.behaviour("M1")
def test_a_registered_future_takes_a_place(files: Files):
    futures: list[Future[Any]] = [Future() for _ in range(4)]
    for future in futures[:3]:
        files.register_running_task(future, "slow", {})
    with pytest.raises(RuntimeError, match="3 of at most 3"):
        files.register_running_task(futures[3], "slow", {})
    for future in futures[:3]:
        future.set_result(None)


@pytest.mark.behaviour("M1")
def test_the_limit_can_change_while_it_runs(files: Files, config: BackgroundConfig):
    config.max_concurrent_tasks = 1
    files.start_background("slow", {})
    with pytest.raises(RuntimeError, match="1 of at most 1"):
        files.start_background("slow", {})
    config.max_concurrent_tasks = -1
    for _ in range(12):
        files.start_background("slow", {})
    # The runtime has limits of its own, with a queue.
    statuses = {files.get_status(handle.task_id) for handle in files.list_tasks()}
    assert statuses == {
        TaskStatus.RUNNING,
        TaskStatus.PENDING,
    }


@pytest.mark.behaviour("M1")
def test_other_plugins_tasks_count_as_far_as_they_say(registry: PluginRegistry, files: Files):
    registry.add(foreign := Foreign())
    foreign.registered = [Future(), Future(), Future()]
    with pytest.raises(RuntimeError, match="3 of at most 3"):
        files.start_background("slow", {})
    foreign.registered[0].set_result(None)
    files.start_background("slow", {})


@pytest.mark.behaviour("M5")
def test_over_the_limit_a_call_goes_on_inline(files: Files, other: Files, executor: ToolExecutor):
    """There is no place in the background: whoever waits gets the result itself."""
    for _ in range(3):
        other.start_background("o_slow", {})
    with ThreadPoolExecutor() as pool:
        calling = pool.submit(executor.execute, "slow", {"value": "inline"})
        files.gate.wait_begun()
        (call,) = executor.calls()
        with pytest.raises(RuntimeError, match="3 of at most 3"):
            executor.promote(call.id)
        files.gate.open()
        assert calling.result(LIMIT) == "inline"
    assert files.gate.executions == 1
    assert files.list_tasks() == []
