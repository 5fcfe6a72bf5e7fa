"""Seed 004, edges: E1 to E13."""

from __future__ import annotations

import asyncio
import re

import pytest
from tests.waiting import stays_async

from jobs import Job, finished, messages, start, take_turn
from meantime import (
    Agent,
    Call,
    Completed,
    Duplicate,
    InlineLimits,
    Meantime,
    NotFound,
    RetryNotSupported,
    Status,
    Thread,
    current,
)
from meantime.testing import FakeClock, FakeSessionRunner

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("F7", "R21")
@pytest.mark.scenario("004", "E1")
async def test_a_second_job_for_the_same_tool_call_is_refused(mt: Meantime, thread: Thread) -> None:
    """A second start for the same tool call is refused, names the first, and nothing runs for it."""
    job, handle = await start(thread, tool_call_id="call-1")
    second = Job()
    with pytest.raises(Duplicate) as refused:
        await thread.start(second.call, tool_call_id="call-1")
    assert (refused.value.code, refused.value.existing) == ("duplicate_tool_call", handle.id)
    job.finish()
    await handle.wait()
    with pytest.raises(Duplicate):
        await thread.start(second.call, tool_call_id="call-1")
    assert second.executions == 0
    assert len(await mt.list("all")) == 1
    assert (await mt.stats())["slots.running"] == 0
    other = await mt.thread("conv-2").start(Call(asyncio.sleep, 0), tool_call_id="call-1")
    await other.wait()


@pytest.mark.behaviour("F7")
@pytest.mark.scenario("004", "E1")
@pytest.mark.embedded
async def test_a_second_call_does_not_run_the_tool_again(thread: Thread, clock: FakeClock) -> None:
    """A call whose tool call has its job already is refused before it is executed."""
    job, _ = await start(thread, tool_call_id="call-1")
    second = Job()
    calling = asyncio.ensure_future(thread.call(second.call, threshold=5, tool_call_id="call-1"))
    await clock.advance(5)
    second.finish()
    with pytest.raises(Duplicate):
        await calling
    assert second.executions == 0
    job.finish()


@pytest.mark.behaviour("F8")
@pytest.mark.scenario("004", "E2")
async def test_a_duplicate_job_id_is_refused(mt: Meantime, thread: Thread) -> None:
    """A start with the id of an existing job is refused, in any thread; the first is untouched."""
    handle = await finished(thread, "first", id="job-1")
    for other in (thread, mt.thread("conv-2")):
        second = Job()
        with pytest.raises(Duplicate) as refused:
            await other.start(second.call, id="job-1")
        assert (refused.value.code, refused.value.existing) == ("duplicate_id", "job-1")
        assert second.executions == 0
    assert await handle.result() == "first"
    assert len(await mt.list("all")) == 1


@pytest.mark.behaviour("N4")
@pytest.mark.scenario("004", "E3")
async def test_non_terminal_updates_do_not_inject(mt: Meantime, thread: Thread) -> None:
    """Progress and a cancel request are no endings: nothing is injected, nobody is woken."""
    job = Job(stubborn=True)

    async def busy() -> object:
        current().progress(10, phase="reading", tool="grep")
        return await job.work()

    handle = await thread.start(Call(busy))
    await job.started.wait()
    await handle.cancel()
    await job.asked_to_stop.wait()
    waking = asyncio.ensure_future(anext(thread.wakeups()))
    assert await take_turn(thread) == []
    assert await mt.notices("unread", "leased", "told", "parked") == []
    assert not waking.done()
    assert await messages(thread) == []
    job.finish()
    await waking
    assert await take_turn(thread) == [handle.id]


@pytest.mark.behaviour("N2")
@pytest.mark.scenario("004", "E4")
async def test_an_ending_that_is_emitted_twice_is_told_once(thread: Thread) -> None:
    """Once told, nothing injects the job again: no turn, no second ack, no second entry."""
    handle = await finished(thread)
    transcript = thread.transcript
    async with thread.turn() as turn:
        (notice,) = turn.notices
        transcript.add(notice.id, notice.message())
        await turn.ack(transcript=transcript)
        transcript.add(notice.id, notice.message())
        await turn.ack(notice, transcript=transcript)
        assert not await turn.boundary()
    transcript.add(notice.id, "again")
    await transcript.save()
    assert await take_turn(thread) == []
    assert len(await messages(thread)) == 1
    assert (await handle.cancel()).disposition == "already_ended"
    assert await take_turn(thread) == []


@pytest.mark.behaviour("L7")
@pytest.mark.scenario("004", "E5")
async def test_a_best_effort_cancel_may_still_complete(thread: Thread) -> None:
    """A cancel was requested, the tool finishes anyway: completed, and told as such."""
    job, handle = await start(thread, stubborn=True)
    await handle.cancel()
    await job.asked_to_stop.wait()
    job.finish("all the same")
    task = await handle.wait()
    assert task.status is Status.COMPLETED
    assert task.outcome == Completed("all the same")
    assert await take_turn(thread) == [handle.id]


@pytest.mark.behaviour("L7")
@pytest.mark.scenario("004", "E6")
async def test_a_cancel_after_the_completion_changes_nothing(thread: Thread) -> None:
    """A cancel that arrives after the execution finished changes nothing."""
    handle = await finished(thread)
    answer = await handle.cancel()
    assert (answer.task.status, answer.disposition) == (Status.COMPLETED, "already_ended")


@pytest.mark.behaviour("L7")
@pytest.mark.scenario("004", "E6")
async def test_a_cancel_that_races_the_completion_has_one_ending(thread: Thread) -> None:
    """However close they come, the job ends once, and finished first is completed."""
    for rounds in range(12):
        job, handle = await start(thread)
        job.finish()
        for _ in range(rounds):
            await asyncio.sleep(0)
        await handle.cancel()
        task = await handle.wait()
        if not job.asked_to_stop.is_set():
            assert task.status is Status.COMPLETED
        assert await take_turn(thread) == [handle.id]


@pytest.mark.behaviour("N5")
@pytest.mark.scenario("004", "E7")
async def test_a_completion_wakes_an_idle_thread(thread: Thread) -> None:
    """An idle thread is asked for its next turn, and that turn injects the message."""
    job, handle = await start(thread)
    waking = asyncio.ensure_future(anext(thread.wakeups()))
    async with thread.turn():  # busy: the wake waits for the boundary
        job.finish()
        await handle.wait()
        await stays_async(lambda: not waking.done(), "a busy thread is not woken", 0.05)
    await waking
    assert await messages(thread) == []
    assert await take_turn(thread) == [handle.id]
    assert len(await messages(thread)) == 1


@pytest.mark.behaviour("I9")
@pytest.mark.scenario("004", "E8")
async def test_another_threads_jobs_can_be_neither_listed_nor_cancelled(mt: Meantime, thread: Thread) -> None:
    """Another thread neither lists the job nor may cancel it."""
    job, handle = await start(thread)
    other = mt.thread("conv-2")
    assert await other.list("all") == []
    assert await other.list("all", history=True) == []
    with pytest.raises(NotFound):
        await other.cancel(handle.id)
    assert await other.cancel_all() == []
    assert await other.close() == []
    assert (await handle.get()).status is Status.RUNNING
    job.finish()
    await handle.wait()
    assert await take_turn(other) == []


@pytest.mark.behaviour("I10")
@pytest.mark.scenario("004", "E9")
async def test_another_threads_job_cannot_be_inspected(mt: Meantime, thread: Thread) -> None:
    """Another thread gets the canonical not-found error: the same as for a job that never was."""
    handle = await finished(thread)
    other = mt.thread("conv-2")
    texts = set()
    for id in (handle.id, "t_0000000000"):
        for verb in (other.get, other.output, other.result, other.wait, other.runs, other.retry):
            with pytest.raises(NotFound) as problem:
                await verb(id)
            assert problem.value.code == "not_found"
            texts.add(str(problem.value).replace(id, "ID"))
    assert len(texts) == 1
    assert "in this thread" in texts.pop()


@pytest.mark.behaviour("N17")
@pytest.mark.scenario("004", "E10")
@pytest.mark.parametrize(
    ("payload", "spills"),
    [
        ("é" * 10, False),  # 20 bytes, 10 characters
        ("é" * 10 + "x", True),
        ("1\n2\n3\n4", False),
        ("1\r\n2\r\n3\r\n4\r\n\r\n", False),  # trailing empty lines do not count
        ("1\n2\n3\n4\n5", True),
        ("a\u2028b\x0bc\x0cd\x85e", False),  # one line: only \n and \r\n split
        ({"key": "value 123"}, False),  # 19 bytes as JSON
        ({"key": "value 12345"}, True),
        ("", False),
    ],
)
async def test_a_payload_near_the_limit_is_well_formed_either_way(
    thread: Thread, payload: object, spills: bool
) -> None:
    """Near the limits the right branch is taken, and either gives a well-formed message."""
    handle = await finished(thread, payload, inline=InlineLimits(max_bytes=20, max_lines=4))
    await take_turn(thread)
    outcome = (await handle.get()).outcome
    assert isinstance(outcome, Completed)
    assert (outcome.spill is not None) is spills
    assert await handle.result() == payload
    (message,) = await messages(thread)
    assert message.text.startswith(f'<task-notification id="{handle.id}.1"/>\n')
    assert len(re.findall(r"(?ms)^Untrusted output:\n<(\d{9})>\n.*\n</\1>$", message.text)) == bool(payload)
    assert ("whole output" in message.text) is spills


@pytest.mark.behaviour("L25", "R23")
@pytest.mark.scenario("004", "E11")
async def test_a_manual_retry_is_refused_with_the_seeds_text(thread: Thread) -> None:
    """A retry is refused with the canonical text; the job is as it was."""
    handle = await finished(thread, OSError("gone"))
    with pytest.raises(RetryNotSupported, match="Manual retry is not supported") as refused:
        await thread.retry(handle)
    assert refused.value.code == "retry_not_supported"
    assert (await handle.get()).run.number == 1


@pytest.mark.behaviour("L27", "R5")
@pytest.mark.scenario("004", "E12")
async def test_a_restart_of_the_forgetful_store_begins_empty(clock: FakeClock) -> None:
    """With the forgetful store a restart begins with an empty registry."""
    async with Meantime.open(":memory:", clock=clock) as mt:
        thread = mt.thread("conv-1")
        handle = await finished(thread)
        await start(thread)
    async with Meantime.open(":memory:", clock=clock) as mt:
        assert await mt.list("all") == []
        assert await mt.notices() == []
        with pytest.raises(NotFound):
            await mt.thread("conv-1").get(handle.id)
        await mt.thread("conv-1").start(Call(asyncio.sleep, 0), id=handle.id)


@pytest.mark.behaviour("L26")
@pytest.mark.scenario("004", "E13")
@pytest.mark.embedded
async def test_a_retryable_model_error_stays_invisible(
    mt: Meantime, thread: Thread, agents: FakeSessionRunner, clock: FakeClock
) -> None:
    """Retryable HTTP errors of the model stay inside: no injection, no change of status."""
    agents.fail_requests(429, 503, 529)
    agents.hold()
    handle = await thread.start(Agent("reader", "read it"))
    await clock.until(lambda: agents.at_gate)
    (session,) = agents.sessions.values()
    assert session.requests == 4
    assert (await handle.get()).status is Status.RUNNING
    assert (await handle.get()).run == handle.task.run
    assert await mt.notices() == []
    assert await take_turn(thread) == []
    agents.release()
    assert (await handle.wait()).status is Status.COMPLETED
    assert await take_turn(thread) == [handle.id]
