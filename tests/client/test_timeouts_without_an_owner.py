"""A function's timeout is kept by the clock of its own process, also while its owner is away (P9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from jobs import Deaf, Job
from meantime import Status, TaskTimedOut, TimedOut
from meantime.testing import FakeClock
from runtimes import client_of

from .pair import Pair, impatient

pytestmark = pytest.mark.anyio
MONTH = 31 * 86_400.0


class Timed(Pair):
    """Here the connected process has a clock of its own, which the test turns."""

    clock: FakeClock

    async def open(self) -> None:
        await super().open()
        self.clock = self.client._executor._clock = FakeClock()

    async def lose_owner(self) -> None:
        await self.owner.close()
        await until_async(lambda: not self.is_up(), "the connection is lost")


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Timed]:
    pair = Timed(tmp_path)
    await pair.open()
    yield pair
    await pair.close()


async def started(pair: Timed, job: Job, timeout: float = 10) -> str:
    handle = await pair.mt.thread("a").start(job.call, timeout=timeout)
    await job.started.wait()
    return handle.id


@pytest.mark.behaviour("P9")
@pytest.mark.parametrize("jump", [-MONTH, 0.0, MONTH])
async def test_the_next_owner_takes_the_age_from_the_process_that_runs_it(pair: Timed, jump: float):
    """Of 10 seconds 4 are over, wherever the wall clock went meanwhile."""
    job = Job()
    id = await started(pair, job)
    await pair.clock.advance(4)
    await pair.lose_owner()
    clock = FakeClock()
    clock.jump(jump)
    await pair.open_owner(clock)
    await clock.until(lambda: any(abs(left - 6) < 1e-6 for left in clock.due_in))
    await clock.advance(5.9)
    assert not job.asked_to_stop.is_set()
    await clock.advance(0.2)
    await until_async(lambda: _ended(pair, id), "the task has ended")
    task = await pair.owner.get(id)
    assert task.status is Status.TIMED_OUT
    assert task.run.duration == pytest.approx(10, abs=0.5)


@pytest.mark.behaviour("P9")
async def test_what_ended_in_time_has_not_timed_out_however_late_it_is_heard(pair: Timed):
    job = Job()
    id = await started(pair, job)
    await pair.lose_owner()
    await pair.clock.advance(4)
    job.finish(5)
    await until_async(lambda: not pair.client._executor.running(), "the function has ended")
    clock = FakeClock()
    clock.jump(MONTH)
    await pair.open_owner(clock)
    await until_async(lambda: _ended(pair, id), "the task has ended")
    task = await pair.owner.get(id)
    assert (task.status, task.run.duration) == (Status.COMPLETED, pytest.approx(4))


async def test_a_function_that_nobody_watches_is_stopped_by_its_own_process(pair: Timed):
    job = Job()
    id = await started(pair, job)
    await pair.lose_owner()
    await pair.clock.advance(9.9)
    assert not job.asked_to_stop.is_set()
    await pair.clock.advance(0.2)
    assert job.asked_to_stop.is_set()
    await pair.open_owner()
    await until_async(lambda: _ended(pair, id), "the task has ended")
    assert (await pair.owner.get(id)).outcome == TimedOut(10)


async def test_what_such_a_function_returns_then_comes_late(pair: Timed):
    job = Job(stubborn=True)
    id = await started(pair, job)
    await pair.lose_owner()
    await pair.clock.advance(11)
    job.finish(5)
    await pair.open_owner()
    await until_async(lambda: _ended(pair, id), "the task has ended")
    task = await pair.owner.get(id)
    assert (task.status, task.late_result) == (Status.TIMED_OUT, 5)


async def test_an_owner_that_is_there_and_does_nothing_does_not_keep_it_running(pair: Timed):
    job = Job()
    await started(pair, job)
    await pair.clock.advance(14.9)
    assert not job.asked_to_stop.is_set()  # it is the owner's to stop
    await pair.clock.advance(1.2)
    assert job.asked_to_stop.is_set()


@pytest.mark.parametrize("deaf", [False, True])
async def test_a_call_that_goes_on_without_an_owner_has_its_timeout(pair: Timed, deaf: bool):
    """Also one that will not stop: whoever waits for it is let go."""
    async with impatient(pair.link) as mt:
        clock = client_of(mt)._executor._clock = FakeClock()
        job = Deaf() if deaf else Job()
        calling = asyncio.create_task(mt.thread("a").call(job.call, timeout=10))
        await job.started.wait()
        await pair.lose_owner()
        await clock.advance(10.1)
        if isinstance(job, Deaf):
            await until_async(lambda: job.asked, "it was asked to stop")
            await clock.advance(10)
        with pytest.raises(TaskTimedOut, match="within 10 s") as caught:
            await asyncio.wait_for(calling, LIMIT)
        assert caught.value.task.status is Status.TIMED_OUT
        job.finish()
    await pair.open_owner()


async def test_a_call_that_becomes_a_task_of_the_next_owner_keeps_its_age(pair: Timed):
    job = Job()
    calling = asyncio.create_task(pair.mt.thread("a").call(job.call, timeout=10))
    await job.started.wait()
    await pair.clock.advance(4)
    await pair.owner.close()
    clock = FakeClock()
    await pair.open_owner(clock)
    answer = await asyncio.wait_for(calling, LIMIT)
    assert answer.mode == "background"
    await clock.until(lambda: any(abs(left - 6) < 1e-6 for left in clock.due_in))
    job.finish()


async def _ended(pair: Pair, id: str) -> bool:
    return (await pair.owner.get(id)).ended
