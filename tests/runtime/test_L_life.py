"""L1 to L13 of the matrix: endings, cancelling, timeouts."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from jobs import Deaf, Job, eventually, finished, start, take_turn
from meantime import (
    Agent,
    Call,
    Cancelled,
    Completed,
    Failed,
    InvalidInput,
    Limits,
    Meantime,
    Settings,
    Status,
    Thread,
    TimedOut,
    current,
)
from meantime.testing import FakeClock, FakeSessionRunner, Reply

pytestmark = pytest.mark.anyio


async def test_L1_ended_is_final(thread: Thread, clock: FakeClock) -> None:
    """No cancel and no clock moves an ended task."""
    handle = await finished(thread, "first", timeout=60)
    ended = await handle.get()
    await handle.cancel()
    await clock.advance(61)
    assert await handle.get() == ended
    assert await take_turn(thread) == [handle.id]


async def test_L2_completed_with_time_and_result(thread: Thread, clock: FakeClock) -> None:
    job, handle = await start(thread)
    await clock.advance(3)
    job.finish([1, 2])
    task = await handle.wait()
    assert (task.status, task.outcome) == (Status.COMPLETED, Completed([1, 2]))
    assert (task.run.ended_at, task.run.duration) == (clock.now(), 3)
    assert await handle.result() == [1, 2]


async def test_L3_failed_with_detail(thread: Thread, agents: FakeSessionRunner) -> None:
    """An exception gives message, code and traceback; a runner's own error comes as it says."""
    handle = await finished(thread, KeyError("rows"))
    outcome = (await handle.get()).outcome
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.message) == ("KeyError", "KeyError: 'rows'")
    assert "Traceback" in outcome.detail
    agents.fail_requests(503, 401)
    refused = await (await thread.start(Agent("reader", "read it"))).wait()
    assert refused.outcome == Failed("The model answered HTTP 401.", "http_401")


async def test_L4_queued_is_visible_with_its_position(mt: Meantime, thread: Thread) -> None:
    await mt.set_limits(per_thread=1)
    job, running = await start(thread)
    waiting = [await thread.start(Call(len, "abc")) for _ in range(3)]
    assert [handle.task.status for handle in waiting] == [Status.QUEUED] * 3
    assert [await thread.position(handle) for handle in (running, *waiting)] == [None, 1, 2, 3]
    await thread.cancel(waiting[0])
    assert await thread.position(waiting[2]) == 2
    assert "queued" in await thread.reminder()
    job.finish()
    ended = await thread.wait(*waiting)
    assert [task.status for task in ended] == [Status.CANCELLED, Status.COMPLETED, Status.COMPLETED]


async def test_L5_cancelling_says_who_and_when(thread: Thread, clock: FakeClock) -> None:
    job, handle = await start(thread, stubborn=True)
    await clock.advance(2)
    await thread.cancel(handle, by="user", reason="wrong folder")
    cancel = (await handle.get()).run.cancel
    assert cancel is not None
    assert (cancel.by, cancel.at, cancel.reason) == ("user", clock.now(), "wrong folder")
    job.finish()
    await handle.wait()


async def test_L6_asked_then_asked_again_then_left_behind(thread: Thread, clock: FakeClock) -> None:
    """At once, after the grace, and at the deadline we stop waiting and say so."""
    deaf = Deaf()
    handle = await thread.start(deaf.call)
    await deaf.started.wait()
    await handle.cancel(reason="enough")
    await clock.until(lambda: deaf.asked == 1)
    await clock.advance(4.9)
    assert deaf.asked == 1
    await clock.advance(0.1)
    await clock.until(lambda: deaf.asked == 2)
    assert (await handle.get()).status is Status.CANCELLING
    await clock.advance(5)
    task = await handle.wait()
    assert task.outcome == Cancelled("agent", "enough", abandoned=True)
    deaf.finish()


async def test_L6_the_second_request_ends_what_ignored_the_first(thread: Thread, clock: FakeClock) -> None:
    job, handle = await start(thread, stubborn=True)
    await handle.cancel()
    await job.asked_to_stop.wait()
    await clock.advance(5)
    assert (await handle.wait()).outcome == Cancelled("agent")


async def test_L6_a_thread_that_will_not_stop_is_left_behind(thread: Thread, clock: FakeClock) -> None:
    """Nothing can interrupt a thread: the ending comes all the same, and its result stays a late one."""
    go, started = threading.Event(), threading.Event()

    def stuck() -> str:
        started.set()
        go.wait(10)
        return "late"

    handle = await thread.start(Call(stuck))
    await asyncio.to_thread(started.wait, 10)
    await handle.cancel()
    await clock.advance(10)
    ended = await handle.wait()
    assert ended.outcome == Cancelled("agent", abandoned=True)
    go.set()

    async def is_kept() -> bool:
        return (await handle.get()).late_result == "late"

    await eventually(is_kept)


async def test_L6_every_runner_can_be_stopped(
    thread: Thread, agents: FakeSessionRunner, clock: FakeClock
) -> None:
    """An async function, a sync one that looks, an agent."""
    started = threading.Event()

    def looks() -> str:
        started.set()
        while not current().cancelled:
            time.sleep(0.001)
        return "half"

    agents.hold()
    _, coroutine = await start(thread)
    sync = await thread.start(Call(looks))
    agent = await thread.start(Agent("reader", "read it"))
    await clock.until(lambda: agents.at_gate and started.is_set())
    answers = await asyncio.gather(*(thread.cancel(handle, wait=True) for handle in (coroutine, sync, agent)))
    assert [answer.task.status for answer in answers] == [Status.CANCELLED] * 3
    assert answers[1].task.outcome == Cancelled("agent", partial="half")


async def test_L7_a_cancel_may_come_too_late_or_be_ignored(thread: Thread) -> None:
    """Finished first is completed; what finishes in spite of a cancel is completed, too."""
    job, handle = await start(thread, stubborn=True)
    await handle.cancel()
    await job.asked_to_stop.wait()
    job.finish("done")
    assert (await handle.wait()).outcome == Completed("done")
    assert (await handle.cancel()).task.status is Status.COMPLETED


async def test_L8_cancel_is_idempotent_with_a_typed_answer(mt: Meantime, thread: Thread) -> None:
    job, handle = await start(thread, stubborn=True)
    answers = await asyncio.gather(*(handle.cancel() for _ in range(5)))
    assert sorted(answer.disposition for answer in answers) == ["already_cancelling"] * 4 + ["applied"]
    await job.asked_to_stop.wait()
    job.finish()
    await handle.wait()
    assert (await handle.cancel()).disposition == "already_ended"
    assert len(await mt.notices("unread")) == 1


async def test_L9_by_user_and_by_agent(mt: Meantime, thread: Thread) -> None:
    _, first = await start(thread)
    _, second = await start(thread)
    await mt.cancel(first.id, reason="I said so", wait=True)
    await first.wait()
    await second.cancel(wait=True)
    assert (await first.get()).outcome == Cancelled("user", "I said so")
    assert (await second.get()).outcome == Cancelled("agent")


async def test_L10_cancel_all_and_clear(mt: Meantime, thread: Thread) -> None:
    """Per thread or per batch; clear hides what ended, and hides nothing that is not told yet."""
    jobs = [await start(thread, batch=batch) for batch in ("a", "a", "b")]
    other, kept = await start(mt.thread("other"))
    await thread.batch("a").cancel()
    ended = await thread.wait(jobs[0][1], jobs[1][1])
    assert [task.status for task in ended] == [Status.CANCELLED] * 2
    assert (await jobs[2][1].get()).status is Status.RUNNING
    assert await thread.batch("a").clear() == 2
    assert await thread.batch("a").list() == []
    assert [task.id for task in await thread.list("all")] == [jobs[2][1].id]
    assert (await thread.get(jobs[0][1])).hidden
    assert len(await thread.cancel_all()) == 1
    await jobs[2][1].wait()
    assert await thread.clear() == 1
    assert await thread.clear() == 0
    assert len(await take_turn(thread)) == 3
    assert len(await thread.list("all", history=True)) == 3
    assert (await kept.get()).status is Status.RUNNING
    other.finish()


@pytest.mark.parametrize("policy", ["keep", "own", "all"])
async def test_L11_interrupt_of_the_parent(mt: Meantime, thread: Thread, policy: Any) -> None:
    """Keep everything, cancel the thread's own, or what these have started, too; never another's."""
    child = Job()
    children: list[Any] = []

    async def parent() -> None:
        children.append(await mt.thread("inner").start(child.call))
        await child.started.wait()
        await asyncio.Event().wait()

    own = await thread.start(Call(parent))
    other_job, other = await start(mt.thread("other"))
    await child.started.wait()
    answers = await thread.interrupt(policy)
    assert len(answers) == {"keep": 0, "own": 1, "all": 2}[policy]
    if policy == "keep":
        assert (await own.get()).status is Status.RUNNING
    else:
        assert (await own.wait()).outcome == Cancelled("interrupt")
    if policy == "all":
        assert (await children[0].wait()).outcome == Cancelled("interrupt")
    else:
        assert (await children[0].get()).status is Status.RUNNING
    assert (await other.get()).status is Status.RUNNING
    other_job.finish()
    child.finish()


@pytest.mark.parametrize("policy", ["cancel", "keep"])
async def test_L12_parent_gone(mt: Meantime, thread: Thread, policy: Any) -> None:
    """The tasks of an ended conversation are cancelled or kept; never another thread's."""
    job, handle = await start(thread)
    other_job, other = await start(mt.thread("other"))
    await thread.close(policy)
    if policy == "cancel":
        assert (await handle.wait()).outcome == Cancelled("parent")
    else:
        assert (await handle.get()).status is Status.RUNNING
    assert (await other.get()).status is Status.RUNNING
    job.finish()
    other_job.finish()
    assert (await other.wait()).status is Status.COMPLETED


async def test_L12_a_closed_ledger_stops_what_runs(ledger: str, clock: FakeClock) -> None:
    """Closing asks every run to stop, and waits for its ending."""
    async with Meantime.open(ledger, clock=clock) as mt:
        job, _ = await start(mt.thread("a"))
    assert job.asked_to_stop.is_set()


@pytest.mark.parametrize("kind", ["coroutine", "thread", "agent"])
async def test_L13_timeouts_are_enforced_for_every_kind(
    thread: Thread, agents: FakeSessionRunner, clock: FakeClock, kind: str
) -> None:
    """On the monotonic clock; a jump of the wall clock changes nothing (P9); partial output is kept."""
    started = threading.Event()

    def sync() -> str:
        current().emit("found", 3)
        started.set()
        while not current().cancelled:
            time.sleep(0.001)
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


async def test_L13_default_maximum_and_note(ledger: str, clock: FakeClock) -> None:
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


async def test_L13_a_queued_task_has_its_whole_time(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
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


async def test_L13_finished_after_the_deadline_is_timed_out(thread: Thread, clock: FakeClock) -> None:
    """Against the clock, finishing late does not win: the result is kept as a late one."""
    job, handle = await start(thread, stubborn=True, timeout=10)
    await clock.advance(10)
    await job.asked_to_stop.wait()
    job.finish("late")
    task = await handle.wait()
    assert (task.outcome, task.late_result) == (TimedOut(10), "late")


async def test_L13_a_call_is_timed_out_inline_and_as_a_task(thread: Thread, clock: FakeClock) -> None:
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
