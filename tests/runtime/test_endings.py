"""L1 to L4, L7 and L12 of the matrix: how a task ends, and the queue before it."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import finished, start, take_turn
from meantime import (
    Agent,
    Call,
    Cancelled,
    Completed,
    Failed,
    Meantime,
    Status,
    Thread,
)
from meantime.testing import FakeClock, FakeSessionRunner

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("L1")
@pytest.mark.embedded
async def test_an_ended_task_stays_ended(thread: Thread, clock: FakeClock) -> None:
    """No cancel and no clock moves an ended task."""
    handle = await finished(thread, "first", timeout=60)
    ended = await handle.get()
    await handle.cancel()
    await clock.advance(61)
    assert await handle.get() == ended
    assert await take_turn(thread) == [handle.id]


@pytest.mark.behaviour("L2")
@pytest.mark.embedded
async def test_a_completed_task_has_its_time_and_result(thread: Thread, clock: FakeClock) -> None:
    job, handle = await start(thread)
    await clock.advance(3)
    job.finish([1, 2])
    task = await handle.wait()
    assert (task.status, task.outcome) == (Status.COMPLETED, Completed([1, 2]))
    assert (task.run.ended_at, task.run.duration) == (clock.now(), 3)
    assert await handle.result() == [1, 2]


@pytest.mark.behaviour("L3")
async def test_a_failed_task_has_its_detail(thread: Thread, agents: FakeSessionRunner) -> None:
    """An exception gives message, code and traceback; a runner's own error comes as it says."""
    handle = await finished(thread, KeyError("rows"))
    outcome = (await handle.get()).outcome
    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.message) == ("KeyError", "KeyError: 'rows'")
    assert "Traceback" in outcome.detail
    agents.fail_requests(503, 401)
    refused = await (await thread.start(Agent("reader", "read it"))).wait()
    assert refused.outcome == Failed("The model answered HTTP 401.", "http_401")


@pytest.mark.behaviour("L4")
async def test_queued_is_visible_with_its_position(mt: Meantime, thread: Thread) -> None:
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


@pytest.mark.behaviour("L7")
async def test_a_cancel_may_come_too_late_or_be_ignored(thread: Thread) -> None:
    """Finished first is completed; what finishes in spite of a cancel is completed, too."""
    job, handle = await start(thread, stubborn=True)
    await handle.cancel()
    await job.asked_to_stop.wait()
    job.finish("done")
    assert (await handle.wait()).outcome == Completed("done")
    assert (await handle.cancel()).task.status is Status.COMPLETED


@pytest.mark.behaviour("L12", "R24")
@pytest.mark.parametrize("policy", ["cancel", "keep"])
async def test_tasks_of_a_parent_that_is_gone_are_kept_or_cancelled(
    mt: Meantime, thread: Thread, policy: Any
) -> None:
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


@pytest.mark.behaviour("L12")
@pytest.mark.parametrize("policy", ["cancel", "keep"])
async def test_a_closed_threads_tasks_leave_its_lists(mt: Meantime, thread: Thread, policy: Any) -> None:
    """Those that have ended at once, those that are cancelled when they end; what is kept stays in sight.
    Nothing is deleted, and what was not told is still told."""
    done = await finished(thread)
    elsewhere = await finished(mt.thread("other"))
    _, running = await start(thread)
    late, stubborn = await start(thread, stubborn=True)  # it finishes in spite of the cancel
    await thread.close(policy)
    assert done.id not in {task.id for task in await thread.list("all")}
    left = {running.id, stubborn.id} if policy == "keep" else set()
    late.finish()
    await stubborn.wait()
    if policy == "cancel":
        await running.wait()
    assert {task.id for task in await thread.list("all")} == left
    assert [task.id for task in await mt.thread("other").list("all")] == [elsewhere.id]
    assert (await thread.get(done.id)).status is Status.COMPLETED
    assert done.id in await take_turn(thread)


@pytest.mark.behaviour("L12")
@pytest.mark.embedded
async def test_a_closed_ledger_stops_what_runs(ledger: str, clock: FakeClock) -> None:
    """Closing asks every run to stop, and waits for its ending."""
    async with Meantime.open(ledger, clock=clock) as mt:
        job, _ = await start(mt.thread("a"))
    assert job.asked_to_stop.is_set()
