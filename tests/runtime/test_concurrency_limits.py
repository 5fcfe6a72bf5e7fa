"""M of the matrix: how much runs at once."""

from __future__ import annotations

import asyncio

import pytest

from jobs import Job, finished, start
from meantime import (
    Agent,
    Call,
    Duplicate,
    InvalidInput,
    LimitReached,
    Limits,
    Meantime,
    Settings,
    Status,
    Thread,
    background,
)
from meantime.testing import FakeClock, FakeSessionRunner

pytestmark = pytest.mark.anyio


async def _statuses(*handles: object) -> list[str]:
    return [str((await handle.get()).status) for handle in handles]  # pyright: ignore


@pytest.mark.in_process("work of a pool does not count against `total`")
@pytest.mark.behaviour("M1", "R15")
async def test_limits_hold_per_thread_per_kind_and_in_all(
    mt: Meantime, thread: Thread, agents: FakeSessionRunner
) -> None:
    """Each limit holds by itself; each kind of a thread has its own count."""
    agents.hold()
    await mt.set_limits(per_thread=2, per_kind={"agent": 1}, total=4)
    calls = [await thread.start(Job().call) for _ in range(3)]
    readers = [await thread.start(Agent("reader", "x")) for _ in range(2)]
    others = [await mt.thread("other").start(Job().call) for _ in range(2)]
    assert await _statuses(*calls) == ["running", "running", "queued"]
    assert await _statuses(*readers) == ["running", "queued"]
    assert await _statuses(*others) == ["running", "queued"]
    stats = await mt.stats()
    assert (stats["slots.running"], stats["slots.waiting"]) == (4, 3)
    for handle in calls + readers + others:
        await mt.cancel(handle.id)


@pytest.mark.in_process("work of a pool does not count against `total`")
@pytest.mark.behaviour("M1", "R15")
async def test_limits_change_at_run_time_and_minus_one_is_none(mt: Meantime, thread: Thread) -> None:
    """A higher limit starts what waits at once; a lower one stops nothing; -1 is none."""
    await mt.set_limits(per_thread=1)
    jobs = [Job() for _ in range(60)]
    handles = [await thread.start(job.call) for job in jobs]
    await mt.set_limits(per_thread=3)
    await asyncio.gather(*(job.started.wait() for job in jobs[:3]))
    assert not jobs[3].started.is_set()
    assert (await mt.set_limits(per_thread=-1, total=-1)).per_thread == -1
    await asyncio.gather(*(job.started.wait() for job in jobs))
    await mt.set_limits(per_thread=1)
    assert (await mt.stats())["slots.running"] == 60
    for job in jobs:
        job.finish()
    assert {task.status for task in await thread.wait(*handles)} == {Status.COMPLETED}
    for bad in (0, -2, 1.5, True):
        with pytest.raises(InvalidInput):
            await mt.set_limits(per_thread=bad)  # pyright: ignore


@pytest.mark.behaviour("M2")
async def test_slots_are_taken_atomically(mt: Meantime, thread: Thread) -> None:
    """However many start at one moment, no more than the limit run."""
    await mt.set_limits(per_thread=3)
    running, most = 0, 0
    full = asyncio.Event()  # the first ones wait for each other: over a socket they come one by one

    async def counted() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            full.set()
        await full.wait()
        await asyncio.sleep(0)
        running -= 1

    handles = await asyncio.gather(*(thread.start(Call(counted)) for _ in range(40)))
    await thread.wait(*handles)
    assert most == 3


@pytest.mark.behaviour("M2")
async def test_slots_are_freed_on_every_failure(mt: Meantime, thread: Thread) -> None:
    """A refused start, a duplicate, a failure, a cancel, a queued cancel: nothing keeps a slot."""

    @background
    def needs_one(value: int) -> int:
        return value

    await finished(thread, OSError("no"), id="ended")
    with pytest.raises(Duplicate):
        await thread.start(Call(len, ""), id="ended")
    with pytest.raises(InvalidInput):
        await thread.start(Call(needs_one))  # pyright: ignore[reportCallIssue]
    await mt.set_limits(per_thread=1)
    _, running = await start(thread)
    queued = await thread.start(Call(len, ""))
    await queued.cancel()
    await running.cancel(wait=True)
    stats = await mt.stats()
    assert (stats["slots.running"], stats["slots.waiting"]) == (0, 0)
    assert await (await thread.start(Call(len, "abc"))).result() == 3


@pytest.mark.behaviour("M2")
@pytest.mark.embedded
async def test_a_slot_is_never_freed_by_a_timer(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    """A slow task keeps its slot for as long as it runs."""
    await mt.set_limits(per_thread=1)
    job, _ = await start(thread)
    waiting = await thread.start(Call(len, "abc"))
    await clock.advance(86_400)
    assert await _statuses(waiting) == ["queued"]
    job.finish()
    assert await waiting.result() == 3


@pytest.mark.behaviour("M3")
async def test_a_refusal_says_how_many_and_what_to_do(mt: Meantime, thread: Thread) -> None:
    await mt.set_limits(per_thread=1, on_limit="reject")
    job, _ = await start(thread)
    with pytest.raises(LimitReached, match="1 of at most 1 call tasks are running in this thread") as refused:
        await thread.start(Call(len, ""))
    assert (refused.value.running, refused.value.limit) == (1, 1)
    assert "cancel one" in refused.value.hint
    assert len(await mt.list("all")) == 1
    job.finish()


@pytest.mark.behaviour("M4", "R15")
async def test_over_the_limit_a_start_is_queued_or_refused(mt: Meantime, thread: Thread) -> None:
    """By the limits, or by the start itself; the queue has an end, too."""
    await mt.set_limits(per_thread=1)
    job, _ = await start(thread)
    with pytest.raises(LimitReached):
        await thread.start(Call(len, ""), on_limit="reject")
    queued = await thread.start(Call(len, "abc"))
    assert queued.task.status is Status.QUEUED
    await mt.set_limits(on_limit="reject")
    with pytest.raises(LimitReached):
        await thread.start(Call(len, ""))
    second = await thread.start(Call(len, "ab"), on_limit="queue")
    with pytest.raises(InvalidInput):
        await thread.start(Call(len, ""), on_limit="wait")
    job.finish()
    assert [await queued.result(), await second.result()] == [3, 2]


@pytest.mark.behaviour("M4")
async def test_a_resume_obeys_the_limits(mt: Meantime, thread: Thread, agents: FakeSessionRunner) -> None:
    """It is a run like any other: refused where starts are refused, and the task stays as it was."""
    ended = await thread.start(Agent("reader", "one"))
    before = await ended.wait()
    agents.hold()
    await mt.set_limits(per_kind={"agent": 1}, on_limit="reject")
    running = await thread.start(Agent("reader", "other"))
    with pytest.raises(LimitReached):
        await thread.resume(ended, "two")
    assert await ended.get() == before
    agents.release()
    await running.wait()
    assert (await (await thread.resume(ended, "two")).wait()).run.number == 2


@pytest.mark.behaviour("M4")
@pytest.mark.embedded
async def test_a_full_queue_refuses(ledger: str, clock: FakeClock) -> None:
    settings = Settings(limits=Limits(per_thread=1, queued=2))
    async with Meantime.open(ledger, clock=clock, settings=settings) as mt:
        thread = mt.thread("a")
        job, _ = await start(thread)
        for _ in range(2):
            await thread.start(Call(len, ""))
        with pytest.raises(LimitReached, match="2 tasks wait"):
            await thread.start(Call(len, ""))
        job.finish()
        await thread.wait()


@pytest.mark.in_process("work of a pool does not count against `total`")
@pytest.mark.behaviour("M4")
async def test_a_thread_does_not_starve_another(mt: Meantime) -> None:
    """First come first served within a thread; threads take turns."""
    await mt.set_limits(total=1)
    job, _ = await start(mt.thread("greedy"))
    order: list[str] = []
    handles = [await mt.thread("greedy").start(Call(order.append, f"greedy-{n}")) for n in range(4)]
    handles += [await mt.thread("modest").start(Call(order.append, "modest"))]
    job.finish()
    for handle in handles:
        await handle.wait()
    assert order.index("modest") <= 1
    assert [name for name in order if name != "modest"] == [f"greedy-{n}" for n in range(4)]


@pytest.mark.in_process("work of a pool does not count against `total`")
@pytest.mark.behaviour("M5")
@pytest.mark.embedded
async def test_the_foreground_is_never_starved(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    """A call runs at once behind any number of background tasks, also as the task it becomes."""
    await mt.set_limits(per_thread=1, total=1, on_limit="reject")
    background_job, _ = await start(thread)
    assert (await thread.call(Call(len, "abc"), threshold=30)).result == 3
    assert (await thread.call(Call(asyncio.sleep, 0, "x"))).result == "x"
    slow = Job()
    calling = asyncio.ensure_future(thread.call(slow.call, threshold=5))
    await clock.advance_to_alarm(5)
    answer = await calling
    assert answer.task is not None
    assert answer.task.status is Status.RUNNING
    assert slow.executions == 1
    assert (await mt.stats())["slots.running"] == 2
    slow.finish()
    background_job.finish()
    await thread.wait()
    assert (await mt.stats())["slots.running"] == 0
