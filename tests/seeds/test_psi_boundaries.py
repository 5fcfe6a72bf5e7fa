"""Seed 004, boundaries of one process: B1, B3, B5 to B8. The races are in test_psi_races.py."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from jobs import Job, finished, messages, start, take_turn
from meantime import Completed, InlineLimits, Meantime, Settings, Status, Thread
from meantime.kernel.payloads import count_lines
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio

LIMITS = InlineLimits()


@pytest.mark.behaviour("F5")
@pytest.mark.scenario("004", "B1")
@pytest.mark.embedded
@pytest.mark.parametrize("finishes_at", [4.999, 5.0, 5.001])
@pytest.mark.parametrize("alarm_first", [True, False])
async def test_a_tool_that_finishes_at_the_threshold_gives_a_result_or_a_job(
    mt: Meantime, thread: Thread, clock: FakeClock, finishes_at: float, alarm_first: bool
) -> None:
    """A tool that finishes at the threshold gives a result or a job, never both; it runs once."""
    job = Job()
    if alarm_first:
        clock.call_later(finishes_at, lambda: job.finish("result"))
    calling = asyncio.ensure_future(thread.call(job.call, threshold=5))
    await clock.until(lambda: 5.0 in clock.due_in)
    if not alarm_first:
        clock.call_later(finishes_at, lambda: job.finish("result"))
    await clock.advance(6)
    await _one_mode(mt, thread, job, calling)


@pytest.mark.behaviour("F5")
@pytest.mark.scenario("004", "B1")
@pytest.mark.embedded
@pytest.mark.parametrize("rounds", range(12))
async def test_a_tool_that_finishes_during_the_hand_off_has_one_mode(
    mt: Meantime, thread: Thread, clock: FakeClock, rounds: int
) -> None:
    """The tool finishes while the hand-off is on its way to the disk: still one mode."""
    job = Job()
    calling = asyncio.ensure_future(thread.call(job.call, threshold=5))
    await clock.until(lambda: 5.0 in clock.due_in)

    async def finish_soon() -> None:
        for _ in range(rounds):
            await asyncio.sleep(0)
        job.finish("result")

    finishing: list[asyncio.Future[None]] = []
    clock.call_later(5, lambda: finishing.append(asyncio.ensure_future(finish_soon())))
    await clock.advance(5)
    await _one_mode(mt, thread, job, calling)


async def _one_mode(mt: Meantime, thread: Thread, job: Job, calling: asyncio.Future) -> None:
    answer = await calling
    if answer.mode == "synchronous":
        assert (answer.result, answer.task) == ("result", None)
        assert await mt.list("all") == []
        assert await take_turn(thread) == []
    else:
        assert (answer.mode, answer.result) == ("background", None)
        (ended,) = await thread.wait(answer.task)
        assert ended.outcome == Completed("result")
        assert await take_turn(thread) == [answer.task.id]
    assert job.executions == 1
    assert (await mt.stats())["slots.running"] == 0


@pytest.mark.behaviour("N3")
@pytest.mark.scenario("004", "B3")
@pytest.mark.embedded
async def test_jobs_that_end_at_the_same_time_are_ordered_by_commit(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    """Jobs that end at one and the same time are ordered by commit, the same in every view."""
    jobs = [await start(thread) for _ in range(10)]
    order = [3, 1, 4, 0, 5, 9, 2, 6, 8, 7]
    for place in order:
        jobs[place][0].finish()
        await jobs[place][1].wait()
    clock.jump(-3600)  # and a clock that goes back changes nothing
    late, handle = await start(thread)
    late.finish()
    await handle.wait()
    wanted = [jobs[place][1].id for place in order] + [handle.id]
    listed = [task.id for task in await thread.list("completed")]
    assert listed == wanted[::-1]
    notices = await mt.notices("unread")
    assert [notice.task_id for notice in notices] == wanted
    assert [notice.number for notice in notices] == list(range(1, 12))
    assert len({notice.task.run.ended_at for notice in notices[:10]}) == 1
    assert await take_turn(thread) == wanted


@pytest.mark.behaviour("N3")
@pytest.mark.scenario("004", "B3")
async def test_jobs_that_end_all_at_once_are_told_in_one_order(thread: Thread) -> None:
    """Jobs that are let go in one moment are told in one order, which the ledger keeps."""
    jobs = [await start(thread) for _ in range(10)]
    for job, _ in jobs:
        job.finish()
    ended = await thread.wait(*(handle for _, handle in jobs))
    told = await take_turn(thread)
    assert sorted(told) == sorted(task.id for task in ended)
    assert [task.id for task in await thread.list("completed")] == told[::-1]


@pytest.mark.behaviour("N17")
@pytest.mark.scenario("004", "B5")
@pytest.mark.parametrize("extra", [0, 1])
@pytest.mark.parametrize("what", ["bytes", "lines"])
async def test_a_payload_at_the_limits_stays_inline_and_one_more_spills(
    thread: Thread, what: str, extra: int
) -> None:
    """At max_bytes and at max_lines the payload stays inline; one more spills to a file."""
    if what == "bytes":
        payload = "x" * (LIMITS.max_bytes + extra)
    else:
        payload = "\n".join(["line"] * (LIMITS.max_lines + extra))
        assert count_lines(payload) == LIMITS.max_lines + extra
    handle = await finished(thread, payload)
    await take_turn(thread)
    outcome = (await handle.get()).outcome
    (message,) = await messages(thread)
    assert isinstance(outcome, Completed)
    if extra:
        assert outcome.result is None
        assert outcome.spill is not None
        assert (outcome.spill.bytes, outcome.spill.lines) == (len(payload), count_lines(payload))
        assert Path(outcome.spill.path).read_text() == payload
        assert outcome.spill.path in message.text
        assert payload not in message.text
    else:
        assert outcome.spill is None
        assert outcome.result == payload
        assert payload in message.text


async def _ended_and_told(thread: Thread, count: int) -> list[str]:
    ids = [(await finished(thread)).id for _ in range(count)]
    await take_turn(thread)
    return ids


@pytest.mark.behaviour("I14")
@pytest.mark.scenario("004", "B6")
async def test_twenty_ended_jobs_are_all_listed(thread: Thread) -> None:
    """Exactly 20 ended jobs are all listed."""
    ids = await _ended_and_told(thread, 20)
    assert [task.id for task in await thread.list("all")] == ids[::-1]


@pytest.mark.behaviour("I14")
@pytest.mark.scenario("004", "B7")
async def test_from_the_21st_on_the_oldest_completion_leaves_the_list(thread: Thread) -> None:
    """From the 21st on, the oldest by completion leaves the list, not the oldest by start."""
    slow, first_started = await start(thread)
    ids = await _ended_and_told(thread, 21)
    assert [task.id for task in await thread.list("completed")] == ids[:0:-1]
    slow.finish()
    await first_started.wait()
    await take_turn(thread)
    assert [task.id for task in await thread.list("all")] == [first_started.id, *ids[:1:-1]]
    gone = await thread.get(ids[0])  # the ledger still has it
    assert gone.status is Status.COMPLETED
    assert len(await thread.list("all", history=True)) == 22


@pytest.mark.behaviour("I14", "R16")
@pytest.mark.scenario("004", "B7")
async def test_what_was_not_told_is_never_evicted(thread: Thread) -> None:
    """The original evicted jobs that its conversation had not heard of; ours stay until they are told."""
    ids = [(await finished(thread)).id for _ in range(25)]
    assert [task.id for task in await thread.list("all")] == ids[::-1]
    assert await take_turn(thread) == ids
    assert [task.id for task in await thread.list("all")] == ids[:4:-1]


@pytest.mark.behaviour("I14")
@pytest.mark.scenario("004", "B8")
@pytest.mark.embedded
async def test_active_jobs_take_no_place_of_an_ended_one(ledger: str, clock: FakeClock) -> None:
    """Active jobs never leave the list and take no place of an ended one."""
    async with Meantime.open(ledger, clock=clock, settings=Settings()) as mt:
        thread = mt.thread("conv-1")
        active = [await start(thread) for _ in range(5)]
        ids = await _ended_and_told(thread, 23)
        listed = await thread.list("all")
        assert {task.id for task in listed if not task.ended} == {handle.id for _, handle in active}
        assert [task.id for task in listed if task.ended] == ids[:2:-1]
        assert len(await thread.list()) == 5
        for job, _ in active:
            job.finish()
