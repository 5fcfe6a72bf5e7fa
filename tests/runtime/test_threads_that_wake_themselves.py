"""A wake budget: an agent that goes round in a circle is slowed down, visibly, and loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.waiting import LIMIT

from jobs import take_turn
from meantime import Call, Meantime, Settings, Thread
from meantime.kernel.wake_budget import WakeBudget
from meantime.testing import FakeClock, FakeHost
from runtimes import runtime_of

pytestmark = pytest.mark.anyio
ROUNDS = 5
SETTINGS = Settings(wakes=WakeBudget(rounds=ROUNDS, seconds=300.0, longest=60.0), reconcile_every=1_000.0)


@pytest.fixture
async def mt(clock: FakeClock) -> AsyncIterator[Meantime]:
    async with Meantime.open(":memory:", clock=clock, settings=SETTINGS) as mt:
        yield mt


@pytest.fixture
def thread(mt: Meantime) -> Thread:
    return mt.thread("conv-1")


class Circling:
    """Woken, it takes its turn, starts the next piece of work, and waits to be woken by it."""

    def __init__(self, thread: Thread, rounds: int = 1_000) -> None:
        self.thread = thread
        self.rounds = rounds
        self.told: list[str] = []

    async def run(self) -> None:
        await self.thread.start(Call(int, "1"))
        async for _ in self.thread.wakeups():
            self.told += await take_turn(self.thread)
            if len(self.told) <= self.rounds:
                await self.thread.start(Call(int, "1"))


async def until_it_rests(mt: Meantime, clock: FakeClock) -> None:
    await clock.until(lambda: runtime_of(mt).waking.resting())


@pytest.mark.behaviour("N5", "P10")
async def test_a_circle_is_slowed_down_more_and_more(mt: Meantime, thread: Thread, clock: FakeClock):
    agent = Circling(thread)
    going = asyncio.create_task(agent.run())
    rests: list[float] = []
    for rest in range(4):
        # The rest begins with the end of the turn, and that may be before the agent has noted it.
        await clock.until(lambda told=ROUNDS + rest: len(agent.told) >= told)
        await until_it_rests(mt, clock)
        (left,) = runtime_of(mt).waking.resting().values()
        rests.append(left)
        before = len(agent.told)
        await clock.advance(left - 0.01)
        assert len(agent.told) == before  # not a moment earlier
        await clock.advance(0.01)
        await clock.until(lambda before=before: len(agent.told) > before)
    assert rests == [1.0, 2.0, 4.0, 8.0]
    going.cancel()


@pytest.mark.behaviour("N5", "P10")
async def test_nothing_is_lost_and_everything_is_said(mt: Meantime, thread: Thread, clock: FakeClock):
    agent = Circling(thread, rounds=8)
    going = asyncio.create_task(agent.run())
    await until_it_rests(mt, clock)
    assert (await mt.stats())["threads.resting"] == 1
    assert "The next wake waits" in await thread.reminder()
    assert len(await mt.notices("unread")) <= 1
    for _ in range(12):
        await clock.advance(60)
    await clock.until(lambda: len(agent.told) == 9)
    assert len(set(agent.told)) == 9
    assert await mt.notices() == []
    await clock.advance(300)
    assert (await mt.stats())["threads.resting"] == 0
    assert await thread.reminder() == ""
    going.cancel()


@pytest.mark.behaviour("N5", "P10")
async def test_a_persons_turn_ends_it(mt: Meantime, thread: Thread, clock: FakeClock):
    """Nobody was woken for it: somebody wrote something. What waits is told with it, at once."""
    going = asyncio.create_task(Circling(thread).run())
    await until_it_rests(mt, clock)
    going.cancel()
    await clock.settle()
    await take_turn(thread)
    assert runtime_of(mt).waking.resting() == {}
    await (await thread.start(Call(int, "1"))).wait()
    async with asyncio.timeout(LIMIT):
        async for _ in thread.wakeups():
            break


@pytest.mark.behaviour("N5", "P10")
async def test_many_endings_are_no_circle(mt: Meantime, thread: Thread, clock: FakeClock):
    gates = [asyncio.Event() for _ in range(ROUNDS * 3)]
    for gate in gates[: ROUNDS * 2]:
        await thread.start(Call(gate.wait))
    woken = 0
    for gate in gates[: ROUNDS * 2]:
        gate.set()
        async for _ in thread.wakeups():
            woken += len(await take_turn(thread))
            break
    assert woken == ROUNDS * 2
    assert runtime_of(mt).waking.resting() == {}


@pytest.mark.behaviour("N5", "P10")
async def test_a_host_that_is_pushed_to_is_slowed_down_too(mt: Meantime, thread: Thread, clock: FakeClock):
    class Circle(FakeHost):
        async def deliver(self, at, notices):
            await super().deliver(at, notices)
            await thread.start(Call(int, "1"))

    host: Any = Circle()
    mt.attach("conv-1", host)
    await thread.start(Call(int, "1"))
    await until_it_rests(mt, clock)
    assert runtime_of(mt).waking.resting() == {"conv-1": 1.0}
    mt.detach("conv-1")
