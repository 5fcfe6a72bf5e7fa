"""A sync function of a connected process that never asks whether it should stop is told when its timeout
passes, as one of the owner's own is. Here the owner would wait an hour for a stop, so that only the rule can
end it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from jobs import eventually
from meantime import Call, Meantime, Settings, TaskTimedOut, TimedOut, current
from meantime.execution.context import LOOK
from meantime.testing import FakeClock
from runtimes import client_of, runtime_of

from .pair import PATIENCE, Pair, until

pytestmark = pytest.mark.anyio
SOON = 0.05  # seconds
PATIENT = Settings(stop_grace=3_600, stop_deadline=3_600)


class Patient(Pair):
    async def open_owner(self, clock: object = None) -> None:
        self.owner = await Meantime.open(self.ledger, link=self.link, settings=PATIENT)


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Patient]:
    pair = Patient(tmp_path)
    await pair.open()
    yield pair
    await pair.close()


@pytest.fixture
def ends() -> Iterator[threading.Event]:
    ends = threading.Event()
    yield ends
    ends.set()


def deaf(ends: threading.Event) -> str:
    ends.wait(60)
    return "too late"


async def test_a_function_that_ignores_its_timeout_is_told_when_the_timeout_passes(
    pair: Patient, ends: threading.Event
):
    """The late result is kept beside the ending, and is never told."""
    thread = pair.mt.thread("a")
    handle = await thread.start(Call(deaf, ends), timeout=SOON)
    (task,) = await thread.wait(handle, timeout=PATIENCE)
    assert task.outcome == TimedOut(SOON, abandoned=True)
    async with thread.turn() as turn:
        assert [notice.task_id for notice in turn.notices] == [handle.id]
        await turn.ack()
    ends.set()

    async def is_kept() -> bool:
        return (await handle.get()).late_result == "too late"

    await eventually(is_kept)
    async with thread.turn() as turn:
        assert not turn.notices


async def test_a_call_that_ignores_its_timeout_raises_when_the_timeout_passes(
    pair: Patient, ends: threading.Event
):
    with pytest.raises(TaskTimedOut):
        await asyncio.wait_for(pair.mt.thread("a").call(Call(deaf, ends), timeout=SOON), PATIENCE)


async def test_a_call_that_became_a_task_is_told_when_its_timeout_passes(
    pair: Patient, ends: threading.Event
):
    thread = pair.mt.thread("a")
    answer = await thread.call(Call(deaf, ends), threshold=SOON, timeout=10 * SOON)
    assert answer.task is not None
    (task,) = await thread.wait(answer.task, timeout=PATIENCE)
    assert task.outcome == TimedOut(10 * SOON, abandoned=True)


async def test_it_is_told_even_if_the_connection_breaks_before_it_is_found_to_be_deaf(
    pair: Patient, ends: threading.Event
):
    clock = pair.client._executor._clock = FakeClock()
    thread = pair.mt.thread("a")
    handle = await thread.start(Call(deaf, ends), timeout=SOON)
    await clock.until(lambda: any(abs(left - LOOK) < 1e-6 for left in clock.due_in))  # it was asked to stop
    pair.cut()
    await clock.advance(LOOK)
    (task,) = await thread.wait(handle, timeout=PATIENCE)
    assert task.outcome == TimedOut(SOON, abandoned=True)


async def test_a_function_that_asks_now_and_then_gets_the_time_to_hand_in_what_it_has(
    pair: Patient, ends: threading.Event
):
    clock = pair.client._executor._clock = FakeClock()

    def slow() -> str:
        assert not current().cancelled
        ends.wait(60)
        return "a half" if current().cancelled else "all"

    thread = pair.mt.thread("a")
    handle = await thread.start(Call(slow), timeout=1)
    await clock.until(lambda: any(abs(left - LOOK) < 1e-6 for left in clock.due_in))
    await clock.advance(LOOK)
    assert (await handle.get()).status == "cancelling"
    ends.set()
    (task,) = await thread.wait(handle, timeout=PATIENCE)
    assert task.outcome == TimedOut(1, partial="a half")


async def test_a_cancel_by_a_person_still_waits_for_it(pair: Patient, ends: threading.Event):
    """One that never asked and returns has finished."""
    clock = pair.client._executor._clock = FakeClock()
    thread = pair.mt.thread("a")
    started = threading.Event()

    def work() -> str:
        started.set()
        return deaf(ends)

    handle = await thread.start(Call(work), timeout=60)
    await until(started.is_set)
    await handle.cancel(wait=False)
    await clock.until(lambda: any(abs(left - LOOK) < 1e-6 for left in clock.due_in))
    await clock.advance(LOOK)
    await until(lambda: _owners_context(pair, handle.id).is_deaf)  # the owner knows, and waits
    assert (await handle.get()).status == "cancelling"
    ends.set()
    (task,) = await thread.wait(handle, timeout=PATIENCE)
    assert task.status == "completed"


async def test_a_call_that_goes_on_without_an_owner_is_let_go(pair: Patient, ends: threading.Event):
    async with Meantime.connect(pair.link, patience=0.05) as mt:
        clock = client_of(mt)._executor._clock = FakeClock()
        started = threading.Event()

        def work() -> str:
            started.set()
            return deaf(ends)

        calling = asyncio.create_task(mt.thread("a").call(Call(work), timeout=10))
        await until(started.is_set)
        await pair.owner.close()
        await until(lambda: not pair.is_up())
        await clock.advance(10)
        await clock.advance(LOOK)
        with pytest.raises(TaskTimedOut):
            await asyncio.wait_for(calling, PATIENCE)
        ends.set()
    await pair.open_owner()


def _owners_context(pair: Patient, id: str):
    return runtime_of(pair.owner).runs.live[id].context
