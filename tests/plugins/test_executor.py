"""ToolExecutor: a plain result, or exactly the seed's dictionary. Never both, never executed twice."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.waiting import LIMIT
from toolbox import DEAF, Files, Foreign

from meantime import Closed, InvalidInput, LedgerError, NotFound, Refused
from meantime.blocking import Meantime
from meantime.plugins import Decision, PluginRegistry, TaskStatus, ToolExecutor
from meantime.plugins.waited_call import FunctionCall
from meantime.plugins.workers import Workers


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(16) as pool:
        yield pool


def calling(pool: ThreadPoolExecutor, executor: ToolExecutor, tool: str, args: Any = None) -> Future[Any]:
    return pool.submit(executor.execute, tool, args or {})


# -- in time


@pytest.mark.behaviour("F5")
@pytest.mark.parametrize("tool", ["quick", "quick_async"])
def test_a_quick_call_gives_the_result_and_no_record(mt: Meantime, executor: ToolExecutor, tool: str):
    """The object itself, as if the tool had been called; the ledger has never heard of it."""
    value = object()
    assert executor.execute(tool, {"value": value}) is value
    assert mt.list("all") == []
    assert mt.notices() == []
    assert executor.calls() == []


@pytest.mark.behaviour("F5")
def test_no_threshold_is_a_plain_call(executor: ToolExecutor):
    """On the caller's own thread."""
    assert executor.execute("never", {}) is threading.current_thread()


@pytest.mark.behaviour("F6")
@pytest.mark.parametrize(
    "problem",
    [
        TimeoutError("the server is slow"),
        ValueError("no"),
        StopIteration(),
        SystemExit(3),
        KeyboardInterrupt(),
    ],
    ids=repr,
)
def test_what_a_tool_raises_is_raised(
    mt: Meantime, executor: ToolExecutor, files: Files, problem: BaseException
):
    """A TimeoutError of its own is its failure, and never taken for "still running"."""
    files.raises = problem
    with pytest.raises(type(problem)) as raised:
        executor.execute("fails", {})
    assert raised.value is problem
    assert mt.list("all") == []
    assert executor.execute("quick", {}) == "done"


@pytest.mark.behaviour("F2")
def test_unknown_tools_and_bad_arguments_are_refused(executor: ToolExecutor, files: Files):
    with pytest.raises(NotFound, match=r"No tool 'rm'. Known tools: fails, never"):
        executor.execute("rm", {})
    args: Any
    for args in (None, [], "x"):
        with pytest.raises(InvalidInput, match="arguments are a dict"):
            executor.execute("quick", args)
    assert files.gate.executions == 0


def test_context_variables_of_the_caller_are_there(registry: PluginRegistry, executor: ToolExecutor):
    variable = contextvars.ContextVar("variable", default="unset")
    plugin = Files("more", prefix="m_")
    plugin.quick = lambda args: variable.get()
    plugin.quick.__name__ = "quick"  # pyright: ignore[reportAttributeAccessIssue]
    registry.add(plugin)
    variable.set("mine")
    assert executor.execute("m_quick", {}) == "mine"


# -- too slow


@pytest.mark.behaviour("F5")
@pytest.mark.scenario("003", "pattern 4")
@pytest.mark.parametrize("tool", ["slow", "slow_async"])
def test_a_slow_call_gives_the_seeds_dictionary(
    mt: Meantime, executor: ToolExecutor, files: Files, tool: str
):
    """To the letter; the task goes on, and its result can be fetched."""
    answer = executor.execute(tool, {})
    id = answer["task_id"]
    assert answer == {
        "auto_backgrounded": True,
        "task_id": id,
        "threshold_seconds": 0.01,
        "message": "Task exceeded 0.01s threshold, continuing in background. "
        f"Use task_id '{id}' to check status.",
    }
    assert files.get_status(id) is TaskStatus.RUNNING
    assert [task.id for task in mt.list("all")] == [id]
    files.gate.open()
    result = files.get_result(id, wait=True)
    assert (result.status, result.result) == (TaskStatus.COMPLETED, "done")
    assert result.duration_seconds >= 0.009  # from its real beginning
    assert files.gate.executions == 1


@pytest.mark.behaviour("N1")
def test_the_conversation_is_told(mt: Meantime, executor: ToolExecutor, files: Files):
    id = executor.execute("slow", {})["task_id"]
    files.gate.open()
    files.get_result(id, wait=True)
    with mt.thread("conv-1").turn() as turn:
        assert [notice.task.id for notice in turn.notices] == [id]


@pytest.mark.behaviour("L6")
@pytest.mark.parametrize("tool", ["polite", "slow_async"])
def test_what_went_to_the_background_can_be_cancelled(
    mt: Meantime, executor: ToolExecutor, files: Files, tool: str
):
    """A sync tool sees it in `current()`, an async one is interrupted."""
    id = executor.execute(tool, {})["task_id"]
    assert files.cancel(id) is True
    assert files.get_status(id) is TaskStatus.CANCELLED
    if tool == "polite":
        assert mt.get(id).progress.percent == 10  # said before it was a task


@pytest.mark.behaviour("F5")
def test_a_call_that_ends_at_the_very_threshold_has_one_answer(
    mt: Meantime, executor: ToolExecutor, files: Files, monkeypatch: pytest.MonkeyPatch
):
    """The time is over, and it ends before the hand-off looks: the result, and no task."""
    looks = FunctionCall.promotion_requested.fget

    def ends_now(call: FunctionCall) -> bool:
        files.gate.open()
        call.future.exception(LIMIT)
        return looks(call)  # pyright: ignore[reportOptionalCall]

    monkeypatch.setattr(FunctionCall, "promotion_requested", property(ends_now))
    assert executor.execute("slow", {"value": "just in time"}) == "just in time"
    assert mt.list("all") == []
    assert files.gate.executions == 1


@pytest.mark.behaviour("F5")
def test_a_call_that_ends_during_the_hand_off_has_one_answer(
    mt: Meantime, executor: ToolExecutor, files: Files, monkeypatch: pytest.MonkeyPatch
):
    """The hand-off has begun: the dictionary, and a task that has the result."""
    hand_off = FunctionCall.hand_off

    def ends_now(call: FunctionCall) -> Any:
        files.gate.open()
        call.future.exception(LIMIT)
        return hand_off(call)

    monkeypatch.setattr(FunctionCall, "hand_off", ends_now)
    answer = executor.execute("slow", {"value": "in the task"})
    assert answer["auto_backgrounded"]
    assert files.get_result(answer["task_id"], wait=True).result == "in the task"
    assert files.gate.executions == 1


@pytest.mark.behaviour("F5")
def test_a_failed_hand_off_goes_on_inline(
    mt: Meantime,
    executor: ToolExecutor,
    files: Files,
    pool: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
):
    """The disk is gone: whoever waits gets the result, and the tool is not executed again."""
    failed = threading.Event()

    def broken(change: object) -> None:
        failed.set()
        raise LedgerError("the disk is gone")

    monkeypatch.setattr(mt._target._runtime.store, "commit", broken)  # pyright: ignore[reportAttributeAccessIssue]
    waiting = calling(pool, executor, "slow", {"value": "inline"})
    assert failed.wait(LIMIT)
    files.gate.open()
    assert waiting.result(LIMIT) == "inline"
    assert files.gate.executions == 1
    assert mt.list("all") == []


@pytest.mark.behaviour("M5")
def test_quick_calls_never_wait_behind_slow_ones(
    registry: PluginRegistry, executor: ToolExecutor, files: Files, pool: ThreadPoolExecutor
):
    """However many are stuck, in the foreground or in the background: seed 003's pool of four was not."""
    registry.config.max_concurrent_tasks = 5
    stuck = [calling(pool, executor, "slow") for _ in range(12)]
    for number in range(20):
        assert executor.execute("quick", {"value": number}) == number
    assert len(files.list_tasks()) <= 5
    files.gate.open()
    for one in stuck:
        one.result(LIMIT)
    assert files.gate.executions == 12 + 20


@pytest.mark.behaviour("F5")
def test_many_threads_each_get_one_answer(executor: ToolExecutor, files: Files, pool: ThreadPoolExecutor):
    registry = executor._registry
    registry.config.max_concurrent_tasks = -1
    waiting = [calling(pool, executor, "slow", {"value": number}) for number in range(16)]
    answers = [one.result(LIMIT) for one in waiting]
    files.gate.open()
    results = {files.get_result(answer["task_id"], wait=True).result for answer in answers}
    assert results == set(range(16))
    assert files.gate.executions == 16


def test_no_thread_left_to_give(executor: ToolExecutor, monkeypatch: pytest.MonkeyPatch):
    def none_left(self: Workers, job: Callable[[], None]) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(Workers, "submit", none_left)
    assert executor.execute("quick", {"value": 1}) == 1


def test_idle_workers_end():
    """A thread that nobody needs does not stay; one that is chosen in its last moment works on."""
    workers = Workers(idle=0.001)
    for _ in range(50):
        done = threading.Event()
        workers.submit(done.set)
        assert done.wait(LIMIT)
    for thread in threading.enumerate():
        if thread.name == "meantime-call" and getattr(thread, "_patience", 0) == 0.001:
            thread.join(LIMIT)
            assert not thread.is_alive()


# -- by hand


@pytest.mark.behaviour("F5")
def test_a_call_is_promoted_by_hand(executor: ToolExecutor, files: Files, pool: ThreadPoolExecutor):
    files.thresholds = {"slow": 600}
    waiting = calling(pool, executor, "slow", {"value": 3})
    files.gate.wait_begun()
    (call,) = executor.calls()
    assert (call.plugin_name, call.tool_name, call.arguments) == ("files", "slow", {"value": 3})
    handle = executor.promote(call.id)
    answer = waiting.result(LIMIT)
    assert answer["task_id"] == handle.task_id == call.id
    assert answer["message"].startswith("Task was sent to the background. Use task_id")
    with pytest.raises(NotFound, match="calls\\(\\) lists"):
        executor.promote(call.id)
    files.gate.open()
    assert files.get_result(handle.task_id, wait=True).result == 3


@pytest.mark.behaviour("F5")
def test_a_promotion_that_comes_too_late_says_so(
    executor: ToolExecutor, files: Files, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
):
    """It ends while somebody asks: they are told, and the caller has the result."""
    files.thresholds = {"slow": 600}
    waiting = calling(pool, executor, "slow", {"value": "inline"})
    files.gate.wait_begun()
    (call,) = executor._inline.values()
    wake = call.wake

    def ends_first(_: object = None) -> None:
        files.gate.open()
        call.future.exception(LIMIT)
        wake()

    monkeypatch.setattr(call, "wake", ends_first)
    with pytest.raises(Refused, match="has ended"):
        call.promote()
    assert waiting.result(LIMIT) == "inline"
    with pytest.raises(Refused, match="has ended"):
        call.promote()


# -- permission


@pytest.mark.behaviour("F18")
def test_permission_is_asked_before_anything_runs(mt: Meantime, registry: PluginRegistry, files: Files):
    asked: list[tuple[str, dict[str, Any]]] = []

    def no(name: str, args: dict[str, Any]) -> bool:
        asked.append((name, args))
        return False

    executor = ToolExecutor(registry, permission=no)
    assert executor.execute("quick", {"value": 1}) == {"error": "Permission denied for tool 'quick'"}
    with pytest.raises(PermissionError, match="Permission denied"):
        executor.start_background("quick", {"value": 1})
    assert asked == [("quick", {"value": 1})] * 2
    assert (files.gate.executions, mt.list("all")) == (0, [])


@pytest.mark.behaviour("F18")
def test_the_decision_is_kept_with_the_task(mt: Meantime, registry: PluginRegistry, files: Files):
    executor = ToolExecutor(registry, lambda name, args: Decision(True, "on the list", by="policy"))
    kept = {"allowed": True, "reason": "on the list", "by": "policy"}
    id = executor.execute("slow", {})["task_id"]
    assert mt.get(id).meta["permission"] == kept
    handle = executor.start_background("quick", {})
    assert handle.metadata == {"permission": kept}
    assert executor.execute("quick", {}) == "done"


@pytest.mark.behaviour("F18")
def test_a_long_reason_is_cut(mt: Meantime, registry: PluginRegistry, files: Files):
    executor = ToolExecutor(registry, lambda name, args: Decision(True, "\ud800" * 100_000))
    id = executor.execute("slow", {})["task_id"]
    assert len(mt.get(id).meta["permission"]["reason"]) == 1_000


@pytest.mark.behaviour("F18")
@pytest.mark.parametrize("answer", [None, "yes", 1, ValueError("no terminal")], ids=repr)
def test_no_clear_answer_is_no_permission(registry: PluginRegistry, files: Files, answer: Any):
    def check(name: str, args: dict[str, Any]) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    error = ToolExecutor(registry, check).execute("quick", {})["error"]
    assert error.startswith("Permission denied for tool 'quick': the check ")
    assert files.gate.executions == 0


# -- plugins of other people


@pytest.mark.behaviour("F5")
def test_a_foreign_plugin_gets_the_future_itself(
    mt: Meantime, registry: PluginRegistry, executor: ToolExecutor
):
    registry.add(foreign := Foreign())
    answer = executor.execute("lookup", {})
    assert answer["task_id"] == "foreign-1"
    foreign.gate.open()
    assert foreign.registered[0].result(LIMIT) == "found"
    assert mt.list("all") == []
    assert executor.start_background("lookup", {}).task_id == "foreign-0"


@pytest.mark.behaviour("F5")
def test_a_call_goes_on_inline_where_a_foreign_plugin_refuses_it(
    registry: PluginRegistry, executor: ToolExecutor, pool: ThreadPoolExecutor
):
    """An error, or no handle at all: the call goes on inline."""
    registry.add(foreign := Foreign())
    foreign.refuses = True
    waiting = calling(pool, executor, "lookup")
    foreign.gate.wait_begun()
    foreign.gate.open()
    assert waiting.result(LIMIT) == "found"


class Plain:
    name = "plain"

    def get_executors(self) -> dict[str, Any]:
        return {"add": self.add, "add_async": self.add_async, "lazy": lambda args: self.add_async(args)}

    def add(self, args: dict[str, Any]) -> int:
        return args["a"] + args["b"]

    async def add_async(self, args: dict[str, Any]) -> int:
        await asyncio.sleep(0)
        return self.add(args)


@pytest.mark.parametrize("tool", ["add", "add_async", "lazy"])
def test_a_plugin_that_knows_nothing_of_the_background(
    registry: PluginRegistry, executor: ToolExecutor, tool: str
):
    registry.add(Plain())
    assert executor.execute(tool, {"a": 1, "b": 2}) == 3
    with pytest.raises(ValueError, match="does not support background"):
        executor.start_background(tool, {"a": 1, "b": 2})


@pytest.mark.behaviour("L6")
@pytest.mark.parametrize("tool", ["slow", "slow_async"])
def test_a_close_stops_an_async_call_and_lets_a_thread_finish(
    ledger: str, pool: ThreadPoolExecutor, tool: str
):
    """An async tool ends with its loop, and its caller hears why; a thread goes on to its end."""
    with Meantime.open(ledger, settings=DEAF) as mt:
        registry = PluginRegistry(mt, "conv-1")
        registry.add(files := Files())
        files.thresholds = {tool: 600}
        waiting = calling(pool, ToolExecutor(registry), tool)
        files.gate.wait_begun()
    if tool == "slow_async":
        with pytest.raises(Closed):
            waiting.result(LIMIT)
    else:
        files.gate.open()
        assert waiting.result(LIMIT) == "done"


# -- async callers


@pytest.mark.anyio
async def test_execute_async_leaves_the_loop_free(executor: ToolExecutor, files: Files):
    """Many at once, also slow ones; the loop goes on, and errors arrive as they are."""
    calls = [asyncio.ensure_future(executor.execute_async("slow", {"value": n})) for n in range(8)]
    assert await executor.execute_async("quick", {"value": "quick"}) == "quick"
    assert await executor.execute_async("quick_async", {"value": "async"}) == "async"
    answers = await asyncio.gather(*calls)
    files.gate.open()
    for answer in answers:
        assert answer["auto_backgrounded"]
    with pytest.raises(ValueError, match="no such file"):
        await executor.execute_async("fails", {})


def test_a_blocking_call_from_meantimes_own_loop_says_so(
    mt: Meantime, executor: ToolExecutor, registry: PluginRegistry
):
    """An async tool that calls another one the blocking way would wait for itself."""
    plugin = Files("inner", prefix="i_")

    async def quick_async(args: dict[str, Any]) -> Any:
        return executor.execute("quick_async", {})

    plugin.quick_async = quick_async
    registry.add(plugin)
    with pytest.raises(InvalidInput, match="would wait for itself"):
        executor.execute("i_quick_async", {})
