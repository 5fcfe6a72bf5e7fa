"""A sync function of a connected process that never asks whether it should stop is told when its timeout
passes, as one of the owner's own is. Here the owner would wait an hour for a stop, so that only the rule can
end it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, Completed, Meantime, Settings, TaskTimedOut, Thread, TimedOut, current
from meantime.execution.context import LOOK
from meantime.testing import FakeClock
from runtimes import client_of, runtime_of

from .pair import Pair, impatient

pytestmark = pytest.mark.anyio
TIMEOUT = 10.0  # seconds, on the clock of the owner
PATIENT = Settings(stop_grace=3_600, stop_deadline=3_600)


class Patient(Pair):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.clock = FakeClock()

    async def open_owner(self, clock: object = None) -> None:
        self.owner = await Meantime.open(self.ledger, link=self.link, settings=PATIENT, clock=self.clock)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Patient]:
    pair = Patient(tmp_path)
    await pair.open()
    yield pair
    await pair.close()


class Deaf:
    """A function that never asks whether it should stop."""

    def __init__(self) -> None:
        self.started, self.ends = threading.Event(), threading.Event()

    def work(self) -> str:
        self.started.set()
        self.ends.wait(LIMIT)
        return "too late"

    async def runs(self) -> None:
        await until_async(self.started.is_set, "the function runs")


@pytest.fixture
def deaf() -> Iterator[Deaf]:
    deaf = Deaf()
    yield deaf
    deaf.ends.set()


async def test_a_function_that_ignores_its_timeout_is_told_when_the_timeout_passes(pair: Patient, deaf: Deaf):
    """The late result is kept beside the ending, and is never told."""
    thread = pair.mt.thread("a")
    handle = await thread.start(Call(deaf.work), timeout=TIMEOUT)
    await deaf.runs()
    await pair.clock.advance(TIMEOUT)
    assert await outcome(thread, handle) == TimedOut(TIMEOUT, abandoned=True)
    async with thread.turn() as turn:
        assert [notice.task_id for notice in turn.notices] == [handle.id]
        await turn.ack()
    deaf.ends.set()

    async def is_kept() -> bool:
        return (await handle.get()).late_result == "too late"

    await until_async(is_kept, "the late result is kept")
    async with thread.turn() as turn:
        assert not turn.notices


async def test_a_call_that_ignores_its_timeout_raises_when_the_timeout_passes(pair: Patient, deaf: Deaf):
    calling = asyncio.create_task(pair.mt.thread("a").call(Call(deaf.work), timeout=TIMEOUT))
    await deaf.runs()
    await pair.clock.advance(TIMEOUT)
    with pytest.raises(TaskTimedOut):
        await asyncio.wait_for(calling, LIMIT)


@pytest.mark.processes
async def test_a_call_that_became_a_task_is_told_when_its_timeout_passes(pair: Patient, deaf: Deaf):
    thread = pair.mt.thread("a")
    calling = asyncio.create_task(thread.call(Call(deaf.work), threshold=TIMEOUT / 10, timeout=TIMEOUT))
    await deaf.runs()
    await pair.clock.advance(TIMEOUT / 10)
    answer = await asyncio.wait_for(calling, LIMIT)
    assert answer.task is not None
    await pair.clock.advance(TIMEOUT)
    assert await outcome(thread, answer.task) == TimedOut(TIMEOUT, abandoned=True)


async def test_it_is_told_even_if_the_connection_breaks_before_it_is_found_to_be_deaf(
    pair: Patient, deaf: Deaf
):
    clock = pair.client._executor._clock = FakeClock()
    thread = pair.mt.thread("a")
    handle = await thread.start(Call(deaf.work), timeout=TIMEOUT)
    await deaf.runs()
    await pair.clock.advance(TIMEOUT)
    await clock.until(lambda: any(abs(left - LOOK) < 1e-6 for left in clock.due_in))  # it was asked to stop
    pair.cut()
    await clock.advance(LOOK)
    assert await outcome(thread, handle) == TimedOut(TIMEOUT, abandoned=True)


@pytest.mark.processes
async def test_a_function_that_asks_now_and_then_gets_the_time_to_hand_in_what_it_has(
    pair: Patient, deaf: Deaf
):
    clock = pair.client._executor._clock = FakeClock()

    def slow() -> str:
        assert not current().cancelled
        deaf.work()
        return "a half" if current().cancelled else "all"

    thread = pair.mt.thread("a")
    handle = await thread.start(Call(slow), timeout=TIMEOUT)
    await deaf.runs()
    await pair.clock.advance(TIMEOUT)
    await clock.until(lambda: any(abs(left - LOOK) < 1e-6 for left in clock.due_in))
    await clock.advance(LOOK)
    assert (await handle.get()).status == "cancelling"
    deaf.ends.set()
    assert await outcome(thread, handle) == TimedOut(TIMEOUT, partial="a half")


async def test_a_cancel_by_a_person_still_waits_for_it(pair: Patient, deaf: Deaf):
    """One that never asked and returns has finished."""
    clock = pair.client._executor._clock = FakeClock()
    thread = pair.mt.thread("a")
    handle = await thread.start(Call(deaf.work), timeout=TIMEOUT)
    await deaf.runs()
    await handle.cancel(wait=False)
    await clock.until(lambda: any(abs(left - LOOK) < 1e-6 for left in clock.due_in))
    await clock.advance(LOOK)
    await until_async(
        lambda: _owners_context(pair, handle.id).is_deaf, "the owner knows that it does not stop"
    )  # the owner knows, and waits
    assert (await handle.get()).status == "cancelling"
    deaf.ends.set()
    assert isinstance(await outcome(thread, handle), Completed)


async def test_a_call_that_goes_on_without_an_owner_is_let_go(pair: Patient, deaf: Deaf):
    async with impatient(pair.link) as mt:
        clock = client_of(mt)._executor._clock = FakeClock()
        calling = asyncio.create_task(mt.thread("a").call(Call(deaf.work), timeout=TIMEOUT))
        await deaf.runs()
        await pair.owner.close()
        await until_async(lambda: not pair.is_up(), "the connection is lost")
        await clock.advance(TIMEOUT)
        await clock.advance(LOOK)
        with pytest.raises(TaskTimedOut):
            await asyncio.wait_for(calling, LIMIT)
        deaf.ends.set()
    await pair.open_owner()


async def outcome(thread: Thread, task: Any) -> Any:
    (ended,) = await asyncio.wait_for(thread.wait(task), LIMIT)
    return ended.outcome


def _owners_context(pair: Patient, id: str):
    return runtime_of(pair.owner).runs.live[id].context
