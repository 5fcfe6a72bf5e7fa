"""Seed 004, nominal behaviour: N1 to N10."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobs import finished, messages, start, take_turn
from meantime import Call, Cancelled, Completed, Failed, Meantime, Status, Thread, TimedOut
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("F6")
@pytest.mark.scenario("004", "N1")
async def test_a_quick_tool_completes_synchronously(mt: Meantime, thread: Thread) -> None:
    """A tool that completes inline answers synchronously: no job id, no record of a background job."""
    answer = await thread.call(Call(asyncio.sleep, 0, "result"), threshold=30)
    assert answer == ("synchronous", "result", None)
    assert await mt.list("all", history=True) == []
    assert await mt.notices() == []
    assert await mt.stats() == {**await mt.stats(), "slots.running": 0, "slots.waiting": 0}


@pytest.mark.behaviour("F6")
@pytest.mark.scenario("004", "N2")
@pytest.mark.embedded
async def test_a_background_start_answers_with_a_job_id(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    """A tool that goes to the background answers with its job id and running; one record is created."""
    gate = asyncio.Event()
    calling = asyncio.ensure_future(thread.call(Call(gate.wait), threshold=5))
    await clock.advance_to_alarm(5)
    answer = await calling
    assert answer.mode == "background"
    assert answer.result is None
    assert answer.task is not None
    assert answer.task.status is Status.RUNNING
    assert [task.id for task in await mt.list("all")] == [answer.task.id]
    gate.set()
    assert (await thread.wait(answer.task))[0].status is Status.COMPLETED


@pytest.mark.behaviour("F6")
@pytest.mark.scenario("004", "N2")
async def test_an_explicit_start_is_background(mt: Meantime, thread: Thread) -> None:
    """A job that is started as one answers at once with its id and running, too."""
    job, handle = await start(thread)
    assert handle.task.status is Status.RUNNING
    assert [task.id for task in await mt.list("all")] == [handle.id]
    job.finish()


@pytest.mark.behaviour("L2")
@pytest.mark.scenario("004", "N3")
@pytest.mark.embedded
@pytest.mark.parametrize("ending", ["completed", "failed", "cancelled", "timed_out"])
async def test_a_job_ends_with_one_terminal_status(thread: Thread, clock: FakeClock, ending: str) -> None:
    """A running job that ends gets its terminal status, the time of its end and its payload."""
    job, handle = await start(thread, timeout=60)
    await clock.advance(7)
    match ending:
        case "completed":
            job.finish({"rows": 3})
        case "failed":
            job.finish(ValueError("no such table"))
        case "cancelled":
            await handle.cancel(reason="not needed")
        case _:
            await clock.advance(53)
    task = await handle.wait()
    assert task.status == ending
    assert task.run.ended_at == clock.now()
    assert task.run.duration == (60 if ending == "timed_out" else 7)
    match task.outcome:
        case Completed(result=result):
            assert (ending, result) == ("completed", {"rows": 3})
        case Failed(message=message, code=code):
            assert (ending, message, code) == ("failed", "ValueError: no such table", "ValueError")
        case Cancelled(by=by, reason=reason):
            assert (ending, by, reason) == ("cancelled", "agent", "not needed")
        case TimedOut(seconds=seconds):
            assert (ending, seconds) == ("timed_out", 60)
        case other:
            raise AssertionError(other)


@pytest.mark.behaviour("N1", "N2")
@pytest.mark.scenario("004", "N4")
async def test_an_ending_is_injected_once(thread: Thread) -> None:
    """At the turn boundary exactly one synthetic message is appended for the job; a turn is triggered."""
    handle = await finished(thread, "forty-two")
    await anext(thread.wakeups())
    assert await take_turn(thread) == [handle.id]
    assert await take_turn(thread) == []
    (message,) = await messages(thread)
    assert handle.id in message.text
    assert "forty-two" in message.text


@pytest.mark.behaviour("N3")
@pytest.mark.scenario("004", "N5")
async def test_endings_of_several_jobs_are_injected_in_order(thread: Thread) -> None:
    """Jobs that ended before the boundary are injected in the order of completion, oldest first."""
    (a, first), (b, second), (c, third) = [await start(thread) for _ in range(3)]
    for job, handle in ((b, second), (c, third), (a, first)):
        job.finish()
        await handle.wait()
    assert await take_turn(thread) == [second.id, third.id, first.id]
    assert len(await messages(thread)) == 3


@pytest.mark.behaviour("L5", "L9")
@pytest.mark.scenario("004", "N6")
@pytest.mark.embedded
@pytest.mark.parametrize("actor", ["user", "agent"])
async def test_user_and_agent_request_a_cancel(
    mt: Meantime, thread: Thread, clock: FakeClock, actor: str
) -> None:
    """Whoever asks, the job is pending_cancel (our cancelling), and the request reaches the tool."""
    job, handle = await start(thread, stubborn=True)
    answer = await (mt.cancel(handle.id) if actor == "user" else thread.cancel(handle))
    assert answer.task.status is Status.CANCELLING
    task = await handle.get()
    assert task.status is Status.CANCELLING
    assert task.run.cancel is not None
    assert (task.run.cancel.by, task.run.cancel.at) == (actor, clock.now())
    await job.asked_to_stop.wait()
    job.finish()
    await handle.wait()


@pytest.mark.behaviour("N17")
@pytest.mark.scenario("004", "N7")
async def test_an_oversize_payload_is_told_as_a_path(thread: Thread) -> None:
    """A payload over the limits lies in a file, and the synthetic message refers to it."""
    payload = "x" * 100_000 + "end"
    handle = await finished(thread, payload)
    await take_turn(thread)
    outcome = (await handle.get()).outcome
    assert isinstance(outcome, Completed)
    assert outcome.spill is not None
    (message,) = await messages(thread)
    assert outcome.spill.path in message.text
    assert len(message.text) < 5_000
    assert Path(outcome.spill.path).read_text() == payload
    assert await handle.result() == payload


async def _mixed(thread: Thread) -> dict[str, str]:
    """A thread with a job of each status; ids by status."""
    ids = {"completed": (await finished(thread)).id, "failed": (await finished(thread, OSError())).id}
    _, cancelled = await start(thread)
    await cancelled.cancel(wait=True)
    _, running = await start(thread)
    _, cancelling = await start(thread, stubborn=True)
    await cancelling.cancel()
    return {**ids, "cancelled": cancelled.id, "running": running.id, "cancelling": cancelling.id}


async def _settle_mixed(clock: FakeClock) -> None:
    """The job that will not stop is left behind, so that the ledger can close."""
    await clock.advance(10)


@pytest.mark.behaviour("I8")
@pytest.mark.scenario("004", "N8")
@pytest.mark.embedded
async def test_the_default_list_has_the_active_jobs(thread: Thread, clock: FakeClock) -> None:
    """Without a filter, only running and pending_cancel jobs are listed."""
    ids = await _mixed(thread)
    assert {task.id for task in await thread.list()} == {ids["running"], ids["cancelling"]}
    await _settle_mixed(clock)


@pytest.mark.behaviour("I8")
@pytest.mark.scenario("004", "N9")
@pytest.mark.embedded
async def test_jobs_are_listed_by_the_statuses_that_are_named(thread: Thread, clock: FakeClock) -> None:
    """With statuses, only jobs of those are listed."""
    ids = await _mixed(thread)
    for status, id in ids.items():
        assert [task.id for task in await thread.list(status)] == [id]
    both = await thread.list(["failed", "running"])
    assert {task.id for task in both} == {ids["failed"], ids["running"]}
    assert {task.id for task in await thread.list("all")} == set(ids.values())
    assert await thread.list("lost") == []
    await _settle_mixed(clock)


@pytest.mark.behaviour("I10")
@pytest.mark.scenario("004", "N10")
@pytest.mark.embedded
async def test_a_job_is_inspected_in_its_own_thread(thread: Thread, clock: FakeClock) -> None:
    """The originating thread gets the full record."""
    job, handle = await start(thread, description="index", tool_call_id="call-7", message_id="m-3", timeout=9)
    began = clock.now()
    await clock.advance(2)
    job.finish(["a"])
    await handle.wait()
    task = await thread.get(handle.id)
    assert (task.thread, task.tool_call_id, task.message_id) == ("conv-1", "call-7", "m-3")
    assert (task.description, task.status, task.run.timeout) == ("index", Status.COMPLETED, 9)
    assert (task.created_at, task.run.started_at, task.run.ended_at) == (began, began, began + 2)
    assert task.outcome == Completed(["a"])
    assert task.work.name.endswith("Job.work")
