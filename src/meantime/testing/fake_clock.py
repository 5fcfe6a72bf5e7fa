"""A clock that stands still until the test moves it. No test has to sleep to wait for luck."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable

from meantime.kernel.due_times import Uptime

from .suite.patience import PATIENCE

MOST_ROUNDS = 10_000  # of the loop in one settling: work that never comes to rest is not waited for


class FakeAlarm:
    """One `call_later`, and a test's view of it: when it is due."""

    def __init__(self, due: float, callback: Callable[[], object]) -> None:
        self.due = due
        self._callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def ring(self) -> None:
        if not self.cancelled:
            self._callback()


class FakeClock:
    """Wall and monotonic time, moved by hand.

    quiet: real seconds that every settling gives to threads, for stores that write on one of their own.
    """

    def __init__(self, start: float = 1_700_000_000.0, *, quiet: float = 0.0) -> None:
        self._wall = start
        self._monotonic = 0.0
        self._slept = 0.0
        self.boot = "boot-1"  # another one is another start of the machine
        self._quiet = quiet
        self._alarms: list[tuple[float, int, FakeAlarm]] = []
        self._made = 0  # breaks ties: alarms of one moment ring in the order in which they were set

    def now(self) -> float:
        return self._wall

    def monotonic(self) -> float:
        return self._monotonic

    def uptime(self) -> Uptime:
        return Uptime(self.boot, self._monotonic + self._slept)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> FakeAlarm:
        alarm = FakeAlarm(self._monotonic + max(0.0, seconds), callback)
        if seconds <= 0:  # it is due: nobody has to move the clock for it
            asyncio.get_running_loop().call_soon(alarm.ring)
            return alarm
        self._made += 1
        heapq.heappush(self._alarms, (alarm.due, self._made, alarm))
        return alarm

    def jump(self, seconds: float) -> None:
        """Moves the wall clock only, back or forth, as a person or NTP would."""
        self._wall += seconds

    def sleep(self, seconds: float) -> None:
        """The machine sleeps: time goes on, except that of the monotonic clock, by which alarms ring."""
        self._wall += seconds
        self._slept += seconds

    @property
    def due_in(self) -> list[float]:
        """The seconds until each alarm that is set, soonest first."""
        return [alarm.due - self._monotonic for _, _, alarm in sorted(self._alarms) if not alarm.cancelled]

    async def advance(self, seconds: float) -> None:
        """Moves both clocks; what comes due rings in order, each with the time that it was set for."""
        end = self._monotonic + seconds
        await self.settle()
        while self._alarms and self._alarms[0][0] <= end:
            _, _, alarm = heapq.heappop(self._alarms)
            if not alarm.cancelled:
                self._move(alarm.due)
                alarm.ring()
                await self.settle()
        self._move(end)
        await self.settle()

    async def settle(self) -> None:
        """Lets the loop run until nothing is ready, and gives threads their quiet time."""
        over = time.monotonic() + self._quiet
        await _come_to_rest()
        while time.monotonic() < over:
            await asyncio.sleep(0.001)
            await _come_to_rest()

    async def until(self, condition: Callable[[], object], *, patience: float = PATIENCE) -> None:
        """Returns once the condition holds; time stands still. `patience` is in real seconds."""
        over = time.monotonic() + patience
        while not condition():
            if time.monotonic() > over:
                raise TimeoutError(f"It did not come true within {patience:g} real seconds.")
            await _come_to_rest()
            if not condition():
                await asyncio.sleep(0.001)  # a thread of the store, or of the work, has to come by

    async def advance_to_alarm(self, seconds: float) -> None:
        """Waits until somebody has set an alarm for `seconds` from now, then advances to it."""
        await self.until(lambda: any(abs(left - seconds) < 1e-6 for left in self.due_in))
        await self.advance(seconds)

    def _move(self, to: float) -> None:
        passed = max(0.0, to - self._monotonic)
        self._monotonic += passed
        self._wall += passed


async def _come_to_rest() -> None:
    loop = asyncio.get_running_loop()
    for _ in range(MOST_ROUNDS):
        await asyncio.sleep(0)
        # Only asyncio's own loop can be asked; on any other, some rounds must do.
        if not getattr(loop, "_ready", _ < 20):
            return
