"""L13 of the matrix: timeouts, on the monotonic clock."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.waiting import LIMIT, until, until_async

from jobs import Job, start
from meantime import (
    Agent,
    Call,
    Completed,
    InvalidInput,
    Limits,
    Meantime,
    Settings,
    Status,
    TaskTimedOut,
    Thread,
    TimedOut,
    current,
)
from meantime.execution.context import LOOK
from meantime.testing import FakeClock, FakeSessionRunner, Reply

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("L13", "R22")
@pytest.mark.embedded
@pytest.mark.parametrize("kind", ["coroutine", "thread", "agent"])
async def test_timeouts_are_enforced_for_every_kind(
    thread: Thread, agents: FakeSessionRunner, clock: FakeClock, kind: str
) -> None:
    """On the monotonic clock; a jump of the wall clock changes nothing (P9); partial output is kept."""
    started = threading.Event()

    def sync() -> str:
        current().emit("found", 3)
        started.set()
        until(lambda: current().cancelled, "it is to stop")
        return "half"

    async def coroutine() -> None:
        current().emit("found", 3)
        started.set()
        await asyncio.Event().wait()

    agents._replies = lambda _: started.set() or Reply(emits={"found": 3})
    agents.hold()
    work = {"coroutine": Call(coroutine), "thread": Call(sync), "agent": Agent("reader", "x")}[kind]
    handle = await thread.start(work, timeout=60)
    await clock.until(started.is_set)
    clock.jump(86_400)
    await clock.advance(59.9)
    assert (await handle.get()).status is Status.RUNNING
    clock.jump(-2 * 86_400)
    await clock.advance(0.1)
    task = await handle.wait()
    partial = "half" if kind == "thread" else None
    assert task.outcome == TimedOut(60, partial, emitted_vars={"found": 3})
    assert task.run.duration == pytest.approx(60)


@pytest.mark.behaviour("L13")
@pytest.mark.embedded
async def test_the_maximum_reduces_a_timeout_and_says_so(ledger: str, clock: FakeClock) -> None:
    """Asked, else the default, never over the maximum; a reduced request says so."""
    settings = Settings(default_timeout=30, max_timeout=90, limits=Limits(per_thread=-1))
    async with Meantime.open(ledger, clock=clock, settings=settings) as mt:
        thread = mt.thread("a")
        given = [(await start(thread, timeout=asked))[1].task.run for asked in (None, 60.5, 900, -1)]
        assert [run.timeout for run in given] == [30, 60.5, 90, 90]
        assert [run.timeout_note for run in given] == [
            "",
            "",
            "900 s were asked for; 90 s is the maximum.",
            "",
        ]
        for bad in (0, -2, float("nan"), float("inf"), "60", True):
            with pytest.raises(InvalidInput):
                await thread.start(Call(len, ""), timeout=bad)  # pyright: ignore
        await clock.advance(90)
        await thread.wait()
        assert len(await thread.list("timed_out")) == 4


@pytest.mark.behaviour("L13")
@pytest.mark.embedded
async def test_a_queued_task_has_its_whole_time(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    """The clock starts with the run, not with the start call."""
    await mt.set_limits(per_thread=1)
    first, _ = await start(thread)
    second = Job()
    handle = await thread.start(second.call, timeout=10)
    await clock.advance(60)
    first.finish()
    await second.started.wait()
    await clock.advance(9)
    second.finish("in time")
    assert (await handle.wait()).outcome == Completed("in time")


@pytest.mark.behaviour("L13")
@pytest.mark.embedded
async def test_finished_after_the_deadline_is_timed_out(thread: Thread, clock: FakeClock) -> None:
    """Against the clock, finishing late does not win: the result is kept as a late one."""
    job, handle = await start(thread, stubborn=True, timeout=10)
    await clock.advance(10)
    await job.asked_to_stop.wait()
    job.finish("late")
    task = await handle.wait()
    assert (task.outcome, task.late_result) == (TimedOut(10), "late")


@pytest.mark.behaviour("L13")
@pytest.mark.embedded
async def test_a_call_is_timed_out_inline_and_as_a_task(thread: Thread, clock: FakeClock) -> None:
    """The time of a call begins with the call, also where it becomes a task on the way."""
    job = Job()
    calling = asyncio.ensure_future(thread.call(job.call, threshold=5, timeout=12))
    await clock.advance_to_alarm(5)
    answer = await calling
    assert answer.task is not None
    await clock.advance(7)
    (ended,) = await thread.wait(answer.task)
    assert ended.outcome == TimedOut(12)
    inline = Job()
    calling = asyncio.ensure_future(thread.call(inline.call, timeout=12))
    await clock.advance_to_alarm(12)
    with pytest.raises(Exception, match="12 s"):
        await calling
    assert inline.asked_to_stop.is_set()


def deaf(ends: threading.Event) -> str:
    """A sync function that never asks whether it should stop."""
    ends.wait(LIMIT)
    return "too late"


@pytest.mark.embedded
async def test_a_sync_function_that_ignores_its_timeout_is_told_when_the_timeout_passes(
    thread: Thread, clock: FakeClock
) -> None:
    """Its slot and its notice do not wait for it. A late result is kept beside the ending, and never told."""
    ends = threading.Event()
    try:
        handle = await thread.start(Call(deaf, ends), timeout=10)
        await clock.advance(10)
        await clock.advance_to_alarm(LOOK)
        assert (await handle.wait()).outcome == TimedOut(10, abandoned=True)
        async with thread.turn() as turn:
            assert [notice.task_id for notice in turn.notices] == [handle.id]
            await turn.ack()
    finally:
        ends.set()

    async def is_kept() -> bool:
        return (await handle.get()).late_result == "too late"

    await until_async(is_kept, "the late result is kept")
    assert (await handle.get()).status == "timed_out"
    async with thread.turn() as turn:
        assert not turn.notices


@pytest.mark.embedded
async def test_a_sync_call_that_ignores_its_timeout_raises_when_the_timeout_passes(
    thread: Thread, clock: FakeClock
) -> None:
    ends = threading.Event()
    try:
        calling = asyncio.ensure_future(thread.call(Call(deaf, ends), timeout=10))
        await clock.advance_to_alarm(10)
        await clock.advance_to_alarm(LOOK)
        with pytest.raises(TaskTimedOut):
            await asyncio.wait_for(calling, LIMIT)
    finally:
        ends.set()


@pytest.mark.embedded
async def test_a_sync_function_that_asks_now_and_then_gets_the_time_to_hand_in_what_it_has(
    thread: Thread, clock: FakeClock
) -> None:
    """It has asked before, so it will ask again: it is waited for until the deadline of every stop."""
    looked, goes_on = threading.Event(), threading.Event()

    def slow() -> str:
        assert not current().cancelled
        looked.set()
        goes_on.wait(LIMIT)
        return "a half" if current().cancelled else "all"

    try:
        handle = await thread.start(Call(slow), timeout=10)
        assert await asyncio.to_thread(looked.wait, LIMIT)
        await clock.advance(10)
        await clock.advance_to_alarm(LOOK)
        assert (await handle.get()).status == "cancelling"
    finally:
        goes_on.set()
    assert (await handle.wait()).outcome == TimedOut(10, partial="a half")
