"""L5, L6 and L8 to L11 of the matrix: two-phase cancels, by whom, and of how much."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.waiting import LIMIT, until, until_async

from jobs import Deaf, Job, finished, start, take_turn
from meantime import (
    Agent,
    Call,
    Cancelled,
    Meantime,
    Status,
    Thread,
    current,
)
from meantime.runtime import clear
from meantime.testing import FakeClock, FakeSessionRunner

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("L5")
@pytest.mark.embedded
async def test_cancelling_says_who_and_when(thread: Thread, clock: FakeClock) -> None:
    job, handle = await start(thread, stubborn=True)
    await clock.advance(2)
    await thread.cancel(handle, by="user", reason="wrong folder")
    cancel = (await handle.get()).run.cancel
    assert cancel is not None
    assert (cancel.by, cancel.at, cancel.reason) == ("user", clock.now(), "wrong folder")
    job.finish()
    await handle.wait()


@pytest.mark.behaviour("L6")
@pytest.mark.embedded
async def test_work_is_asked_to_stop_then_asked_again_then_left_behind(
    thread: Thread, clock: FakeClock
) -> None:
    """At once, after the grace, and at the deadline we stop waiting and say so."""
    deaf = Deaf()
    handle = await thread.start(deaf.call)
    await deaf.started.wait()
    await handle.cancel("enough")
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


@pytest.mark.behaviour("L6")
@pytest.mark.embedded
async def test_the_second_request_ends_what_ignored_the_first(thread: Thread, clock: FakeClock) -> None:
    job, handle = await start(thread, stubborn=True)
    await handle.cancel()
    await job.asked_to_stop.wait()
    await clock.advance(5)
    assert (await handle.wait()).outcome == Cancelled("agent")


@pytest.mark.behaviour("L6")
@pytest.mark.embedded
async def test_a_thread_that_will_not_stop_is_left_behind(thread: Thread, clock: FakeClock) -> None:
    """Nothing can interrupt a thread: the ending comes all the same, and its result stays a late one."""
    go, started = threading.Event(), threading.Event()

    def stuck() -> str:
        started.set()
        go.wait(LIMIT)
        return "late"

    handle = await thread.start(Call(stuck))
    await asyncio.to_thread(started.wait, LIMIT)
    await handle.cancel()
    await clock.advance(10)
    ended = await handle.wait()
    assert ended.outcome == Cancelled("agent", abandoned=True)
    go.set()

    async def is_kept() -> bool:
        return (await handle.get()).late_result == "late"

    await until_async(is_kept, "the late result is kept")


@pytest.mark.behaviour("L6")
@pytest.mark.embedded
async def test_every_runner_can_be_stopped(
    thread: Thread, agents: FakeSessionRunner, clock: FakeClock
) -> None:
    """An async function, a sync one that looks, an agent."""
    started = threading.Event()

    def looks() -> str:
        started.set()
        until(lambda: current().cancelled, "it is to stop")
        return "half"

    agents.hold()
    _, coroutine = await start(thread)
    sync = await thread.start(Call(looks))
    agent = await thread.start(Agent("reader", "read it"))
    await clock.until(lambda: agents.at_gate and started.is_set())
    answers = await asyncio.gather(*(thread.cancel(handle, wait=True) for handle in (coroutine, sync, agent)))
    assert [answer.task.status for answer in answers] == [Status.CANCELLED] * 3
    assert answers[1].task.outcome == Cancelled("agent", partial="half")


@pytest.mark.behaviour("L8")
async def test_cancel_is_idempotent_with_a_typed_answer(mt: Meantime, thread: Thread) -> None:
    job, handle = await start(thread, stubborn=True)
    answers = await asyncio.gather(*(handle.cancel() for _ in range(5)))
    assert sorted(answer.disposition for answer in answers) == ["already_cancelling"] * 4 + ["applied"]
    await job.asked_to_stop.wait()
    job.finish()
    await handle.wait()
    assert (await handle.cancel()).disposition == "already_ended"
    assert len(await mt.notices("unread")) == 1


@pytest.mark.behaviour("L9")
async def test_user_and_agent_can_cancel(mt: Meantime, thread: Thread) -> None:
    _, first = await start(thread)
    _, second = await start(thread)
    await mt.cancel(first.id, reason="I said so", wait=True)
    await first.wait()
    await second.cancel(wait=True)
    assert (await first.get()).outcome == Cancelled("user", "I said so")
    assert (await second.get()).outcome == Cancelled("agent")


@pytest.mark.behaviour("L10")
async def test_all_tasks_of_a_thread_are_cancelled_and_cleared(mt: Meantime, thread: Thread) -> None:
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


@pytest.mark.behaviour("L11")
@pytest.mark.parametrize("policy", ["keep", "own", "all"])
async def test_an_interrupt_of_the_parent_keeps_or_cancels_its_tasks(
    mt: Meantime, thread: Thread, policy: Any
) -> None:
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


@pytest.mark.behaviour("L10")
@pytest.mark.embedded
async def test_clear_clears_everything_that_has_ended(
    thread: Thread, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the thread's history is, and in however many pages it is looked at."""
    monkeypatch.setattr(clear, "PAGE", 10)
    for _ in range(45):
        await finished(thread)
    await clock.advance(60)
    young = [await finished(thread) for _ in range(12)]
    assert await thread.clear(older_than=30) == 45
    listed = await thread.list("all", history=True, limit=100)
    assert {task.id for task in listed if not task.hidden} == {handle.id for handle in young}
    assert await thread.clear() == 12
    assert await thread.clear() == 0
