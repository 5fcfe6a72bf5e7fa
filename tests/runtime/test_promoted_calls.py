"""F5 and F6, by hand: a call that runs inline is sent to the background, and has one answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from jobs import Deaf, Job
from meantime import (
    Agent,
    Ambiguous,
    Call,
    Cancelled,
    Failed,
    Handle,
    LedgerError,
    Meantime,
    NotFound,
    Refused,
    Status,
    TaskCancelled,
    TaskFailed,
    TaskTimedOut,
    Thread,
    TimedOut,
    current,
)
from meantime.kernel.change import Change
from meantime.ports.store import Committed
from meantime.testing import FakeClock, FakeSessionRunner, Reply
from outcomes import unfinished
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


async def waiting(thread: Thread, job: Job, **options: Any) -> tuple[asyncio.Future, str]:
    """A call that somebody waits for, and its id."""
    calling = asyncio.ensure_future(thread.call(job.call, **options))
    await job.started.wait()
    return calling, (await thread.calls())[-1].id


@pytest.mark.behaviour("F5")
async def test_a_call_is_promoted_by_hand(mt: Meantime, thread: Thread) -> None:
    """Whoever waits gets the task as its answer, and so does whoever asked for it."""
    job = Job()
    calling, id = await waiting(thread, job, description="index", meta={"plugin": "files"})
    assert await mt.list("all") == []

    handle = await thread.promote(id)
    answer = await calling
    assert (answer.mode, answer.result) == ("background", None)
    assert handle.id == id == answer.task.id
    assert await thread.calls() == []
    job.finish("done")
    assert await handle.result() == "done"
    assert (await handle.get()).meta == {"plugin": "files"}
    assert job.executions == 1


@pytest.mark.behaviour("F5")
async def test_calls_are_seen_as_they_run(mt: Meantime, thread: Thread) -> None:
    """A snapshot of each, with its progress; of this thread only, but a person sees all."""
    gate = asyncio.Event()

    async def work() -> None:
        current().progress(40, phase="half")
        current().emit("found", 3)
        await gate.wait()

    async def both_run() -> bool:
        calls = await mt.calls()
        return len(calls) == 2 and calls[0].progress is not None

    mine = asyncio.ensure_future(thread.call(Call(work), tool_call_id="call-1"))
    other = asyncio.ensure_future(mt.thread("conv-2").call(Call(gate.wait)))
    await until_async(both_run, "both run", mt.calls)
    (seen,) = await thread.calls()
    assert (seen.status, seen.tool_call_id, seen.progress.percent) == (Status.RUNNING, "call-1", 40)
    assert seen.run.emitted == {"found": 3}
    assert [task.thread for task in await mt.calls()] == ["conv-1", "conv-2"]
    gate.set()
    assert [(await call).mode for call in (mine, other)] == ["synchronous", "synchronous"]


@pytest.mark.behaviour("F5")
async def test_a_person_promotes_any_threads_call(mt: Meantime, thread: Thread) -> None:
    """A unique prefix is enough; another thread cannot see the call."""
    job = Job()
    calling, id = await waiting(thread, job)
    with pytest.raises(NotFound):
        await mt.thread("conv-2").promote(id)
    task = await mt.promote(id[:6])
    assert (task.id, task.status) == (id, Status.RUNNING)
    assert (await calling).task.id == id
    job.finish()


@pytest.mark.behaviour("F5")
async def test_what_cannot_be_promoted_says_why(mt: Meantime, thread: Thread) -> None:
    job = Job()
    calling, id = await waiting(thread, job)
    with pytest.raises(NotFound):
        await thread.promote("nobody")
    await thread.promote(id)
    await calling
    with pytest.raises(Refused, match="is a task already") as refused:
        await thread.promote(id)
    assert refused.value.code == "already_a_task"
    job.finish()
    await thread.wait(id)

    quick = Job()
    calling, id = await waiting(thread, quick)
    quick.finish("now")
    assert (await calling).result == "now"
    with pytest.raises(Refused, match="has ended") as refused:
        await thread.promote(id)
    assert refused.value.code == "already_ended"
    with pytest.raises(NotFound):  # nor does another thread learn that it was there
        await mt.thread("conv-2").promote(id)


@pytest.mark.behaviour("F5")
async def test_a_prefix_of_two_calls_is_ambiguous(thread: Thread) -> None:
    jobs = [Job(), Job()]
    calls = [await waiting(thread, job, id=id) for job, id in zip(jobs, ("t_abc1", "t_abc2"), strict=True)]
    with pytest.raises(Ambiguous):
        await thread.promote("abc")
    for job, (calling, _) in zip(jobs, calls, strict=True):
        job.finish()
        assert (await calling).mode == "synchronous"


@pytest.mark.behaviour("F5")
@pytest.mark.embedded
async def test_many_promotions_at_once_share_one_hand_off(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    """The threshold and several people at the same moment share one hand-off."""
    job = Job()
    calling, id = await waiting(thread, job, threshold=5)
    handles: list[asyncio.Future] = []
    for _ in range(3):
        clock.call_later(5, lambda: handles.append(asyncio.ensure_future(thread.promote(id))))
    await clock.advance_to_alarm(5)
    answer = await calling
    assert answer.mode == "background"
    for found in await asyncio.gather(*handles, return_exceptions=True):
        assert isinstance(found, Refused) or (isinstance(found, Handle) and found.id == id)
    assert len(await mt.list("all")) == 1
    assert (await mt.stats())["slots.running"] == 1
    job.finish()
    await thread.wait(id)
    assert (await mt.stats())["slots.running"] == 0


@pytest.mark.behaviour("F5")
async def test_a_call_that_ends_while_it_is_promoted_has_one_answer(mt: Meantime, thread: Thread) -> None:
    """The commit was on its way first: one answer, the task, which ends at once."""
    job = Job()
    calling, id = await waiting(thread, job)
    promoting = asyncio.ensure_future(thread.promote(id))
    await asyncio.sleep(0)  # it has looked, and the commit is on its way
    job.finish("at last")
    handle, answer = await asyncio.gather(promoting, calling)
    assert (answer.mode, answer.task.id) == ("background", handle.id)
    assert await handle.result() == "at last"
    assert job.executions == 1


def failing(mt: Meantime, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """The next commit fails, once the event is set."""
    store = runtime_of(mt).store
    commit, gate = store.commit, asyncio.Event()

    def broken(change: Change) -> asyncio.Future[Committed]:
        monkeypatch.setattr(store, "commit", commit)

        async def fail() -> Committed:
            await gate.wait()
            raise LedgerError("the disk is gone")

        return asyncio.ensure_future(fail())

    monkeypatch.setattr(store, "commit", broken)
    return gate


@pytest.mark.behaviour("F5")
@pytest.mark.embedded
async def test_a_failed_hand_off_goes_on_inline(
    mt: Meantime, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asked hears the error; whoever waits gets the result; nothing is executed again."""
    job = Job()
    calling, id = await waiting(thread, job)
    failing(mt, monkeypatch).set()
    with pytest.raises(LedgerError, match="the disk is gone"):
        await thread.promote(id)
    assert [task.id for task in await thread.calls()] == [id]
    assert (await mt.stats())["slots.running"] == 0
    assert (await thread.promote(id)).id == id  # the disk is back
    job.finish("done")
    assert (await calling).mode == "background"
    assert job.executions == 1


@pytest.mark.behaviour("F5")
@pytest.mark.embedded
async def test_a_call_that_ends_while_its_hand_off_fails_is_synchronous(
    mt: Meantime, thread: Thread, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job()
    calling, id = await waiting(thread, job)
    gate = failing(mt, monkeypatch)
    promoting = asyncio.ensure_future(thread.promote(id))
    await asyncio.sleep(0)
    job.finish("inline")
    await clock.settle()
    assert not calling.done()  # the commit decides what it is
    gate.set()
    assert await calling == ("synchronous", "inline", None)
    with pytest.raises(LedgerError):
        await promoting
    assert await mt.list("all") == []


@pytest.mark.behaviour("F5")
@pytest.mark.embedded
@pytest.mark.parametrize("fails", [False, True])
async def test_the_caller_goes_away_while_it_is_promoted(
    mt: Meantime, thread: Thread, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """What became a task goes on; what did not is stopped with its caller."""
    job = Job()
    calling, id = await waiting(thread, job)
    gate = failing(mt, monkeypatch) if fails else asyncio.Event()
    promoting = asyncio.ensure_future(thread.promote(id))
    await asyncio.sleep(0)
    calling.cancel()
    gate.set()
    await asyncio.wait([calling, promoting])
    assert calling.cancelled()
    if fails:
        await asyncio.wait_for(job.asked_to_stop.wait(), LIMIT)
        assert isinstance(promoting.exception(), LedgerError)
    else:
        job.finish("done")
        assert await promoting.result().result() == "done"
        assert not job.asked_to_stop.is_set()


@pytest.mark.behaviour("F5")
@pytest.mark.embedded
async def test_a_promotion_goes_on_when_the_one_that_asked_goes_away(thread: Thread) -> None:
    job = Job()
    calling, id = await waiting(thread, job)
    promoting = asyncio.ensure_future(thread.promote(id))
    await asyncio.sleep(0)
    promoting.cancel()
    assert (await calling).task.id == id
    job.finish()
    await thread.wait(id)


@pytest.mark.behaviour("L13")
@pytest.mark.embedded
async def test_a_promoted_calls_timeout_still_counts(thread: Thread, clock: FakeClock) -> None:
    job = Job()
    calling, id = await waiting(thread, job, timeout=30)
    await clock.advance(10)
    handle = await thread.promote(id)
    assert (await calling).mode == "background"
    await clock.advance_to_alarm(20)
    assert (await handle.wait()).status is Status.TIMED_OUT


@pytest.mark.behaviour("L13")
@pytest.mark.embedded
async def test_a_call_that_timed_out_cannot_be_promoted(thread: Thread, clock: FakeClock) -> None:
    """It is being stopped. The error carries the ending, and a late result never counts."""
    job = Deaf()
    calling, id = await waiting(thread, job, timeout=30)
    await clock.advance(30)
    with pytest.raises(Refused, match="being stopped"):
        await thread.promote(id)
    job.finish("too late")
    with pytest.raises(TaskTimedOut) as problem:
        await calling
    task = problem.value.task
    assert (task.status, task.outcome) == (Status.TIMED_OUT, TimedOut(30))
    assert (task.late_result, task.run.duration) == ("too late", 30)


@pytest.mark.behaviour("L13")
@pytest.mark.embedded
async def test_a_call_that_will_not_stop_after_its_timeout_is_abandoned(
    thread: Thread, clock: FakeClock
) -> None:
    job = Deaf()
    calling, _ = await waiting(thread, job, timeout=30)
    await clock.advance(30)
    await clock.advance_to_alarm(0.5)  # a sync function that never asks would be left now
    await clock.advance_to_alarm(9.5)
    with pytest.raises(TaskTimedOut) as problem:
        await calling
    assert problem.value.task.outcome == TimedOut(30, abandoned=True)
    job.finish()


@pytest.mark.behaviour("L3")
async def test_an_error_that_was_reported_carries_its_outcome(
    thread: Thread, agents: FakeSessionRunner
) -> None:
    """An exit code and the partial output can be read from the exception."""
    failed = Failed("exit status 2", "exit", exit_code=2, partial="half a build")
    agents._replies = Reply(error=failed, emits={"step": 4})
    with pytest.raises(TaskFailed, match="exit status 2") as problem:
        await thread.call(Agent("builder", "make"))
    task = problem.value.task
    assert isinstance(task.outcome, Failed)
    assert (task.status, task.outcome.exit_code, unfinished(task).partial) == (
        Status.FAILED,
        2,
        "half a build",
    )
    assert task.outcome.emitted_vars == {"step": 4}


@pytest.mark.behaviour("L6")
async def test_a_call_that_a_close_stops_is_cancelled(ledger: str) -> None:
    job = Job()
    async with Meantime.open(ledger) as mt:
        calling, _ = await waiting(mt.thread("conv-1"), job)
    with pytest.raises(TaskCancelled) as problem:
        await calling
    assert problem.value.task.outcome == Cancelled("shutdown")
