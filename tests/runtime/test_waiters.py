"""Callers that wait, and what happens in the same moment: they give up, or two things come at once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Call, Meantime, Settings, Shell
from meantime.kernel.lifecycle import Status
from meantime.kernel.wake_budget import WakeBudget
from meantime.runtime import usual_durations
from meantime.runtime.runtime import Runtime
from meantime.testing import FakeClock
from meantime.testing.fake_clock import FakeAlarm
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def mt(clock: FakeClock) -> AsyncIterator[Meantime]:
    async with Meantime.open(":memory:", clock=clock) as mt:
        yield mt


@pytest.fixture
def runtime(mt: Meantime) -> Runtime:
    return runtime_of(mt)


async def forever() -> None:
    await asyncio.Event().wait()


def broken() -> None:
    raise ValueError("no")


# -- wakes


async def test_a_caller_that_gives_up_leaves_the_other_waiting(mt: Meantime, runtime: Runtime):
    one, other = (asyncio.create_task(runtime.waking.wait("a", 0)) for _ in range(2))
    await asyncio.sleep(0)
    assert runtime.waking.waiting("a") == 2
    one.cancel()
    await asyncio.gather(one, return_exceptions=True)
    assert runtime.waking.waiting("a") == 1
    await (await mt.thread("a").start(Call(int, "1"))).wait()
    async with asyncio.timeout(LIMIT):
        assert await other > 0


async def test_a_caller_that_gives_up_in_the_moment_of_the_wake_is_cancelled(runtime: Runtime):
    """Before the wake, and after it: neither leaves anything behind."""
    early, late = (asyncio.create_task(runtime.waking.wait("a", 0)) for _ in range(2))
    await asyncio.sleep(0)
    early.cancel()
    runtime.waking.nudge("a")
    late.cancel()
    assert [type(one) for one in await asyncio.gather(early, late, return_exceptions=True)] == [
        asyncio.CancelledError
    ] * 2
    assert runtime.waking.waiting("a") == 0


async def test_several_callers_of_a_thread_that_rests_are_warned_of_once(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
):
    settings = Settings(wakes=WakeBudget(rounds=1, seconds=300.0, longest=60.0), reconcile_every=1_000.0)
    async with Meantime.open(":memory:", clock=clock, settings=settings) as mt:
        waking = runtime_of(mt).waking
        seen = 0
        for _ in range(3):
            await (await mt.thread("a").start(Call(int, "1"))).wait()
            if waking.rests("a"):
                break
            seen = await waking.wait("a", seen)
            async with mt.thread("a").turn() as turn:
                await turn.ack()
        with caplog.at_level(logging.WARNING, "meantime"):
            waiters = [asyncio.create_task(waking.wait("a", seen)) for _ in range(2)]
            await asyncio.sleep(0)
        assert [record.message for record in caplog.records if "it rests for" in record.message] != []
        assert len(caplog.records) == 1
        assert waking.waiting("a") == 2
        for waiter in waiters:
            waiter.cancel()
        await asyncio.gather(*waiters, return_exceptions=True)


async def test_a_reader_of_the_journal_that_gives_up_in_the_moment_of_an_event_is_cancelled(
    mt: Meantime, runtime: Runtime
):
    last = await runtime.store.last_event()
    reading = asyncio.create_task(runtime.wait_events(last))
    await asyncio.sleep(0)
    reading.cancel()
    runtime.observing.wake()
    assert isinstance((await asyncio.gather(reading, return_exceptions=True))[0], asyncio.CancelledError)
    await mt.thread("a").start(Call(forever))
    async with asyncio.timeout(LIMIT):
        await runtime.wait_events(last)


# -- endings


async def test_two_endings_at_once_are_enough_for_one_who_waits_for_any(mt: Meantime, runtime: Runtime):
    gate = asyncio.Event()
    ids = [(await mt.thread("a").start(Call(gate.wait))).id for _ in range(2)]
    waiting = asyncio.create_task(runtime.wait(ids, "a", until="any"))
    await asyncio.sleep(0)
    gate.set()
    async with asyncio.timeout(LIMIT):
        assert any(task.ended for task in await waiting)


async def test_a_wait_that_is_over_at_once_leaves_nothing_behind(mt: Meantime, runtime: Runtime):
    """Somebody may ask again and again whether any of them has ended."""
    ended = await (await mt.thread("a").start(Call(int, "1"))).wait()
    running = await mt.thread("a").start(Call(forever))
    for _ in range(3):
        assert len(await mt.thread("a").wait(ended.id, running, until="any")) == 2
    assert runtime.looking._waiting == {}


async def test_an_ending_of_another_thread_is_not_read_by_a_turn(mt: Meantime, runtime: Runtime):
    """A program may wait for anything; what it sees counts as read only in its own conversation."""
    other = await mt.thread("b").start(Call(int, "1"))
    async with mt.thread("a").turn() as turn:
        (task,) = await runtime.wait([other.id], None, turn=turn.id)
        assert task.status is Status.COMPLETED
        await turn.ack()
    async with mt.thread("b").turn() as turn:
        assert [notice.task_id for notice in turn.notices] == [other.id]
        await turn.ack()


async def test_a_wait_that_runs_out_reads_nothing(mt: Meantime, clock: FakeClock):
    running = await mt.thread("a").start(Call(forever))
    async with mt.thread("a").turn() as turn:
        (task,) = await turn.wait(running, timeout=0.0)
        assert not task.ended
        assert (await turn.ack()).told == ()


# -- turns


async def test_a_turn_that_is_closed_twice_at_once_is_closed_once(mt: Meantime, runtime: Runtime):
    await (await mt.thread("a").start(Call(int, "1"))).wait()
    turn = await mt.thread("a").turn().__aenter__()
    await asyncio.gather(*(runtime.close_turn(turn.id, failed=False, thread="a") for _ in range(2)))
    assert runtime.waking.unread("a") == 1
    assert await runtime.waking.wait("a", 0) > 0, "the thread is idle"


async def test_a_turn_that_is_closed_in_the_moment_of_its_lapse_is_closed_once(
    mt: Meantime, runtime: Runtime, clock: FakeClock
):
    await (await mt.thread("a").start(Call(int, "1"))).wait()
    turn = await mt.thread("a").turn(lease=60.0).__aenter__()
    alarm = runtime.announcing._turns[turn.id].alarm
    assert isinstance(alarm, FakeAlarm)
    closing = asyncio.create_task(runtime.close_turn(turn.id, failed=False, thread="a"))
    await asyncio.sleep(0)
    alarm.ring()
    await closing
    await clock.settle()
    async with mt.thread("a").turn() as again:
        (notice,) = again.notices
        assert notice.delivery == 2, "it was given back once, and not as a failure"
        await again.ack()


async def test_an_open_turn_is_shown_with_what_it_holds(mt: Meantime, runtime: Runtime):
    await (await mt.thread("a").start(Call(int, "1"))).wait()
    assert (await runtime.attendance("a")).turn is None
    async with mt.thread("a").turn() as turn:
        found = await runtime.attendance("a")
        assert (found.turn, found.held) == (turn.id, 1)
        await turn.ack()


# -- usual durations


async def test_the_newest_of_a_long_history_are_learned_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Page by page, and no further than the limit: an open does not read a history of years."""
    monkeypatch.setattr(usual_durations, "PAGE", 2)
    monkeypatch.setattr(usual_durations, "HISTORY", 4)
    async with Meantime.open(tmp_path / "work.db") as mt:
        for _ in range(6):
            await (await mt.thread("a").start(Shell("true"), description="build")).wait()
    async with Meantime.open(tmp_path / "work.db") as mt:
        usual = runtime_of(mt).usual
        await usual.remembering.wait()
        task = await (await mt.thread("a").start(Shell("true"), description="build")).wait()
        found = usual.estimates.usual(task)
        assert found is not None
        assert found.runs == 5


async def test_an_ending_while_the_history_is_read_is_learned_once(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        task = await (await mt.thread("a").start(Shell("true"), description="build")).wait()
        runtime = runtime_of(mt)
        again = usual_durations.UsualDurations(runtime.record)
        again.open()
        again.estimates.learn_from(task)  # as its commit does
        assert again._meanwhile is not None
        again._meanwhile.add(task.id)
        await again.remembering.wait()
        found = again.estimates.usual(task)
        assert found is not None
        assert found.runs == 1
        await again.close()


# -- a task that just ended


async def test_an_ending_that_was_waited_for_is_not_looked_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A look at the ledger goes by a thread: it would delay whoever waits for a cancel. A start needs none,
    either, even at a worker."""
    async with Meantime.open(tmp_path / "work.db") as mt:
        looked: list[str] = []
        store = runtime_of(mt).record.store
        load = store.load
        monkeypatch.setattr(store, "load", lambda id: looked.append(id) or load(id))
        handle = await mt.thread("a").start(Call(forever))
        answer = await handle.cancel(wait=True)
        assert answer.task.status is Status.CANCELLED
        assert looked == []
        assert answer.task == await mt.get(handle.id)
        assert looked == [handle.id]
