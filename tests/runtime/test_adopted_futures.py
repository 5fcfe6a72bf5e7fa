"""F5 from outside: a future that is executing already becomes a task. We never execute anything."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from meantime import (
    Cancelled,
    Context,
    Failed,
    InvalidInput,
    LimitReached,
    Limits,
    Meantime,
    Settings,
    Status,
    Thread,
    TimedOut,
)
from meantime.blocking import Meantime as Blocking
from meantime.blocking import begin
from meantime.testing import FakeClock
from outcomes import failed, unfinished

pytestmark = pytest.mark.anyio


def running() -> Future:
    """A future as an executor has it while its function runs."""
    future: Future = Future()
    assert future.set_running_or_notify_cancel()
    return future


@pytest.mark.behaviour("F5")
@pytest.mark.embedded
async def test_a_running_future_becomes_a_task(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    """Its result is the ending; its arguments are kept; its time counts from its real beginning."""
    future = running()
    handle = await thread.adopt(
        future, name="cli:runCommand", arguments={"command": "make"}, running_for=10, meta={"plugin": "cli"}
    )
    task = await handle.get()
    assert (task.status, task.title, task.work.input) == (Status.RUNNING, "runCommand", {"command": "make"})
    assert (task.meta, task.created_at - task.run.started_at) == ({"plugin": "cli"}, 10)  # pyright: ignore[reportOperatorIssue]
    assert (await mt.stats())["slots.running"] == 1
    await clock.advance(5)
    future.set_result({"made": True})
    assert await handle.result() == {"made": True}
    assert (await handle.get()).run.duration == 15
    assert (await mt.stats())["slots.running"] == 0


@pytest.mark.behaviour("F5")
async def test_arguments_that_are_too_big_are_kept_in_part(thread: Thread) -> None:
    future = running()
    handle = await thread.adopt(future, name="big", arguments={"text": "x" * 2_000_000, "lock": object()})
    future.set_result(None)
    assert len((await handle.wait()).work.input["too_big"]) < 3_000


@pytest.mark.behaviour("F5")
async def test_what_a_worker_thread_runs_can_be_adopted(thread: Thread) -> None:
    gate = asyncio.Event()
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor() as pool:
        future = pool.submit(lambda: asyncio.run_coroutine_threadsafe(gate.wait(), loop).result())
        handle = await thread.adopt(future, name="slow")
        gate.set()
        assert await handle.result() is True


@pytest.mark.behaviour("F5")
async def test_a_future_that_is_done_ends_at_once(thread: Thread) -> None:
    future = running()
    future.set_result("was quick")
    assert await (await thread.adopt(future, name="quick")).result() == "was quick"


@pytest.mark.behaviour("L3")
@pytest.mark.parametrize("problem", [TimeoutError("slow server"), SystemExit(3), StopIteration()], ids=repr)
async def test_the_exception_of_an_adopted_future_is_its_failure(
    thread: Thread, problem: BaseException
) -> None:
    future = running()
    handle = await thread.adopt(future, name="fails")
    future.set_exception(problem)
    outcome = (await handle.wait()).outcome
    assert isinstance(outcome, Failed)
    assert type(problem).__name__ in outcome.message


@pytest.mark.behaviour("F5")
async def test_an_asyncio_future_of_this_loop_can_be_adopted(thread: Thread) -> None:
    future = asyncio.get_running_loop().create_future()
    handle = await thread.adopt(future, name="here")
    future.set_result(4)
    assert await handle.result() == 4


@pytest.mark.behaviour("L7")
async def test_a_cancel_is_best_effort(thread: Thread) -> None:
    """One that has not begun is cancelled; one that finishes first is completed."""
    pending: Future = Future()
    handle = await thread.adopt(pending, name="pending")
    answer = await thread.cancel(handle, wait=True)
    assert (answer.task.outcome, pending.cancelled()) == (Cancelled("agent"), True)

    future = running()
    handle = await thread.adopt(future, name="busy")
    await thread.cancel(handle)
    future.set_result("finished first")
    assert (await handle.wait()).status is Status.COMPLETED


@pytest.mark.behaviour("L6")
@pytest.mark.embedded
async def test_what_will_not_stop_is_left_behind(thread: Thread, clock: FakeClock) -> None:
    """After the deadline it is cancelled, honestly; what it says later is kept, and is no success."""
    future = running()
    handle = await thread.adopt(future, name="deaf")
    cancelling = asyncio.ensure_future(thread.cancel(handle, wait=True))
    await clock.advance_to_alarm(10)
    answer = await cancelling
    assert answer.task.outcome == Cancelled("agent", abandoned=True)
    future.set_result("late")
    await clock.until(lambda: not thread._tasks.runs.live)  # pyright: ignore[reportAttributeAccessIssue]
    task = await handle.get()
    assert (task.status, task.late_result) == (Status.CANCELLED, "late")


@pytest.mark.behaviour("L13")
@pytest.mark.embedded
async def test_its_timeout_is_enforced(thread: Thread, clock: FakeClock) -> None:
    """From its beginning, not from its adoption."""
    future = running()
    handle = await thread.adopt(future, name="slow", timeout=30, running_for=10)
    await clock.advance_to_alarm(20)
    await clock.advance_to_alarm(10)
    assert (await handle.wait()).outcome == TimedOut(30, abandoned=True)
    future.set_result(None)


@pytest.mark.behaviour("L7")
async def test_a_future_that_somebody_else_cancels_has_failed(thread: Thread) -> None:
    pending: Future = Future()
    handle = await thread.adopt(pending, name="pending")
    pending.cancel()
    pending.set_running_or_notify_cancel()
    assert failed(await handle.wait()).code == "cancelled_itself"


@pytest.mark.behaviour("L6")
async def test_the_work_can_look_whether_it_should_stop(thread: Thread) -> None:
    """`linked` gets the context: work that looks, and returns early, has stopped."""
    contexts: list[Context] = []
    future = running()
    handle = await thread.adopt(future, name="polite", linked=contexts.append)
    await thread.cancel(handle)
    assert contexts[0].task_id == handle.id
    assert contexts[0].cancelled
    future.set_result("half of it")
    task = await handle.wait()
    assert (task.status, unfinished(task).partial) == (Status.CANCELLED, "half of it")


@pytest.mark.behaviour("L27")
async def test_after_a_restart_it_is_lost(tmp_path: Path) -> None:
    """Nobody can find a future of another process. (The ledger is copied as a crash would leave it.)"""
    async with Meantime.open(tmp_path / "work.db", settings=Settings(stop_deadline=0.01)) as mt:
        handle = await mt.thread("a").adopt(running(), name="gone")
        for file in tmp_path.glob("work.db*"):
            if file.is_file() and not file.name.endswith((".lock", "-shm")):
                (tmp_path / file.name.replace("work", "copy")).write_bytes(file.read_bytes())
    async with Meantime.open(tmp_path / "copy.db") as mt:
        assert (await mt.get(handle.id)).status is Status.LOST


@pytest.mark.behaviour("F5")
async def test_bad_input_is_refused_and_nothing_is_recorded(mt: Meantime, thread: Thread) -> None:
    """Refused with a word about what to do, and nothing is recorded."""

    async def work() -> None: ...

    coroutine: Any = work()
    with pytest.raises(InvalidInput, match=r"not coroutine.*ensure_future"):
        await thread.adopt(coroutine, name="x")
    coroutine.close()
    foreign = asyncio.new_event_loop()
    with pytest.raises(InvalidInput, match="another event loop"):
        await thread.adopt(foreign.create_future(), name="x")
    foreign.close()
    name: Any
    for name in ("", None, "x" * 501, "\ud800"):
        with pytest.raises(InvalidInput, match="name must be"):
            await thread.adopt(running(), name=name)
    seconds: Any
    for seconds in (-1, float("nan"), "1", True):
        with pytest.raises(InvalidInput, match=r"not an age|not a number"):
            await thread.adopt(running(), name="x", running_for=seconds)
    with pytest.raises(InvalidInput, match="cannot be retried"):
        await thread.adopt(running(), name="x", retry="idempotent")
    assert await mt.list("all") == []
    assert (await mt.stats())["slots.running"] == 0


@pytest.mark.behaviour("M1")
async def test_it_takes_a_slot_unless_told_otherwise() -> None:
    """It runs already, so it cannot queue; `on_limit="reject"` refuses it instead."""
    settings = Settings(limits=Limits(per_thread=1), stop_deadline=0.01)
    async with Meantime.open(":memory:", settings=settings) as mt:
        thread = mt.thread("a")
        futures = [running(), running()]
        handles = [await thread.adopt(future, name="x") for future in futures]
        with pytest.raises(LimitReached):
            await thread.adopt(running(), name="x", on_limit="reject")
        for future in futures:
            future.set_result(1)
        assert [await handle.result() for handle in handles] == [1, 1]


@pytest.mark.behaviour("F9")
async def test_meta_is_kept_with_the_task(mt: Meantime, thread: Thread) -> None:
    future = running()
    meta = {"plugin": "cli", "tags": ["a", 1, None], "permission": {"allowed": True}}
    handle = await thread.adopt(future, name="x", meta=meta)
    future.set_result(None)
    await handle.wait()
    assert (await mt.get(handle.id)).meta == meta


@pytest.mark.behaviour("F9")
@pytest.mark.parametrize(
    ("meta", "says"),
    [
        ({1: "x"}, "not JSON"),
        ({"x": object()}, "not JSON"),
        ({"x": float("nan")}, "not JSON"),
        ({"x": "y" * 20_000}, "at most 16384"),
        (["x"], "must be a dict"),
        ("x", "must be a dict"),
    ],
)
async def test_meta_is_checked(mt: Meantime, thread: Thread, meta: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        await thread.adopt(running(), name="x", meta=meta)
    assert await mt.list("all") == []


@pytest.mark.behaviour("I14")
@pytest.mark.embedded
async def test_clear_hides_only_what_ended_long_enough_ago(thread: Thread, clock: FakeClock) -> None:
    """Only what ended so many seconds ago, by the runtime's own clock."""
    first, second = running(), running()
    for future in (first, second):
        future.set_result(None)
    old = await thread.adopt(first, name="old")
    await old.wait()
    await clock.advance(60)
    new = await thread.adopt(second, name="new")
    await new.wait()
    assert await thread.clear(older_than=60) == 1
    assert [task.id for task in await thread.list("all")] == [new.id]
    with pytest.raises(InvalidInput, match=r"not an age|not a number"):
        await thread.clear(older_than=-1)


def test_begin_does_not_wait() -> None:
    """For blocking code that wants to wait its own way; cancelling it is the end of the wait."""
    with Blocking.open(":memory:") as mt:
        thread = mt.thread("a")
        future = running()
        handle = begin(thread.adopt, future, name="x").result()
        assert type(handle) is type(thread.adopt(future, name="y"))
        waiting = begin(handle.wait)
        assert not waiting.done()
        future.set_result(1)
        assert waiting.result().status is Status.COMPLETED
    with pytest.raises(InvalidInput, match="method of a blocking object"):
        begin(len, "x")
