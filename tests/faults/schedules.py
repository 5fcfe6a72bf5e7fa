"""Family 5: seeded event-loop schedules. Many actors at once on a store that answers late; then the
runtime is closed at a random moment, another opens on the same store, and everything must come out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

from meantime import Delivery, MeantimeError, Notice

from .clock import FaultClock
from .judge import Tally, Told, Verdict, judge
from .lagging import LaggingStore
from .loops import SeededLoop, Stuck, leave
from .world import Failure, World

PULLED, WOKEN, PUSHED = "pulled", "woken", "pushed"
THREADS = (PULLED, WOKEN, PUSHED)


class Host:
    """A class B host: a list, which can be looked into. It fails now and then, before or after writing."""

    delivery = Delivery("B", can_wake=True)

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.lines: list[Told] = []

    async def has(self, thread: str, notice: str) -> bool:
        return any(line.id == notice for line in self.lines)

    async def deliver(self, thread: str, notices: Sequence[Notice]) -> None:
        fails = self._rng.random()
        if fails < 0.1:
            raise Failure
        for notice in notices:
            await asyncio.sleep(0)
            self.lines.append(Told(notice.id, notice.task.status))
            if fails < 0.15:
                raise Failure


class Scenario:
    def __init__(self, seed: int, plant: Callable[[Scenario], None] | None = None) -> None:
        self.rng = random.Random(seed)
        self.clock = FaultClock()
        self.store = LaggingStore(self.rng)
        self.world = World(lambda: self.store, self.clock, parks_after=1_000)
        self.host = Host(self.rng)
        self.closes = self.rng.random() < 0.5
        self.running: list[asyncio.Task[Any]] = []
        if plant is not None:
            plant(self)

    async def play(self) -> Verdict:
        await self._open()
        actors = [self._starter, self._starter, self._finisher, self._canceller, self._turner, self._turner,
                  self._upkeeper, self._impatient, self._person]  # fmt: skip
        self.running = [asyncio.ensure_future(self._act(actor)) for actor in actors]
        await self._pause(self.rng.randrange(60))
        if self.closes:
            await self.world.meantime.close()
            await asyncio.wait(self.running)
            await self._open()
        else:
            await asyncio.wait(self.running)
        await self._come_out()
        return judge(self.world.ledger, await self._transcripts())

    async def _open(self) -> None:
        await self.world.open()
        self.world.meantime.attach(PUSHED, self.host)
        self.world.thread(PUSHED)
        self.woken = asyncio.ensure_future(self._woken())

    async def _woken(self) -> None:
        """A host that only ever looks when it is woken."""
        async for _ in self.world.thread(WOKEN).wakeups():
            try:
                await self.world.turn(WOKEN, limit=self.rng.choice([1, 3, 100]), fail=self.rng.random() < 0.1)
            except (Failure, MeantimeError):
                continue

    async def _come_out(self) -> None:
        """No pulling by hand where a host is woken or pushed to: only time passes."""
        world = self.world
        for _ in range(400):
            for id in list(world.active):
                world.finish(id)
            await self._pause(5)
            await world.observe()
            with suppress(MeantimeError):
                await world.turn(PULLED)
            if not world.active and not await world.meantime.notices():
                return
            self.clock.ring()

    async def _transcripts(self) -> dict[str, list[Told]]:
        found = await self.world.transcripts()
        return {**found, PUSHED: self.host.lines}

    # -- actors

    async def _act(self, actor: Callable[[], Awaitable[object]]) -> None:
        for _ in range(self.rng.randrange(2, 8)):
            await self._pause(self.rng.randrange(6))
            try:
                await actor()
            except (MeantimeError, Failure):
                continue

    async def _pause(self, ticks: int) -> None:
        for _ in range(ticks):
            await asyncio.sleep(0)

    async def _starter(self) -> None:
        options: dict[str, Any] = {"timeout": self.rng.choice([None, None, 20.0])}
        await self.world.start(self.rng.choice(THREADS), stubborn=self.rng.random() < 0.2, **options)

    async def _finisher(self) -> None:
        ids = sorted(self.world.active)
        for id in self.rng.sample(ids, min(len(ids), self.rng.choice([1, 2, 5]))):
            self.world.finish(id, self.rng.random() < 0.7)
        if ids and self.rng.random() < 0.5:
            last = self.rng.choice(ids)
            await self.world.thread(last.partition("-")[0]).wait(last.rpartition(".")[0], timeout=1.0)
        self.clock.jump(self.rng.choice([0.0, -1e3, 1e3]))
        await self.world.observe()

    async def _canceller(self) -> None:
        ids = sorted(self.world.active)
        if ids:
            await self.world.cancel(self.rng.choice(ids), wait=self.rng.random() < 0.3)

    async def _turner(self) -> None:
        ended = sorted(id for id, thread in self.world.over.items() if thread == PULLED)
        read = self.rng.choice(ended) if ended and self.rng.random() < 0.3 else ""
        ack = self.rng.choice([None, None, 0, 1])
        fail, boundary = self.rng.random() < 0.2, self.rng.random() < 0.3
        limit = self.rng.choice([1, 2, 100])
        await self.world.turn(PULLED, limit=limit, ack=ack, read=read, fail=fail, boundary=boundary)

    async def _upkeeper(self) -> None:
        self.clock.jump(self.rng.choice([0.0, -1e6, 1e6]))
        deed = self.rng.randrange(3)
        if deed == 0:
            await self.world.thread(self.rng.choice(THREADS)).clear()
        elif deed == 1:
            per_thread, total = self.rng.choice([1, 3, -1]), self.rng.choice([2, 8])
            await self.world.meantime.set_limits(per_thread=per_thread, total=total)
        else:
            self._let_time_pass()

    async def _person(self) -> None:
        """Looks at everything that has ended; that is nobody's business but theirs."""
        for id in sorted(self.world.over):
            await self.world.meantime.output(id.rpartition(".")[0])

    def _let_time_pass(self) -> None:
        for id, thread in self.world.active.items():  # any of them may time out now
            self.world.say("finishing", thread, id)
        self.clock.ring()

    async def _impatient(self) -> None:
        """A caller that is cancelled while it waits: what it asked for may have happened, or not."""
        doing = asyncio.ensure_future(self.rng.choice([self._starter, self._turner, self._canceller])())
        await self._pause(self.rng.randrange(8))
        doing.cancel()
        await asyncio.wait([doing])
        if not doing.cancelled() and (problem := doing.exception()) is not None:
            raise problem


def play(seed: int, plant: Callable[[Scenario], None] | None = None) -> Verdict:
    scenario = Scenario(seed, plant)
    loop = SeededLoop(seed, scenario.clock)
    try:
        return loop.run_until_complete(scenario.play())
    except Stuck as stuck:
        return Verdict(lost=(f"hang: {stuck}",))
    finally:
        leave(loop)


def run(seed: int, schedules: int, reproduce: str) -> Tally:
    tally = Tally("seeded event-loop schedules", reproduce)
    for number in range(schedules):
        own = seed * 1_000_003 + number
        where = f"schedule {own}: from tests.faults import schedules; schedules.play({own})"
        try:
            tally.add(play(own), where)
        except Exception as problem:
            tally.broke(f"{type(problem).__name__}: {problem}", where)
    return tally
