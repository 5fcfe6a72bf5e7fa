"""The alarm for the next of many due times, on both clocks."""

from __future__ import annotations

from collections.abc import Callable

from meantime.kernel.due_times import DueTime
from meantime.ports.clock import Alarm, Clock

AT_ONCE = 20  # due ones that are looked at in one turn of the loop: others have theirs in between
JUMPED = 0.5  # seconds by which the alarm may ring too early


class DueAlarm:
    """Rings once, when the next due time has come: whoever is called sets the next one."""

    def __init__(self, clock: Clock, ring: Callable[[], object]) -> None:
        self._clock = clock
        self._ring = ring
        self._wall: float | None = None  # when the next one is due, by each clock
        self._uptime: float | None = None
        self._alarm: Alarm | None = None
        self._rings_at = 0.0  # monotonic

    def next_is(self, wall: float | None, uptime: float | None) -> None:
        """The next due time by the wall clock, and in seconds since this boot."""
        self._wall, self._uptime = wall, uptime
        self.look_at_clocks()

    def hear_of(self, due: DueTime) -> None:
        """One more, which may be the next. A delay must be of this boot."""
        if due.is_delay:
            self._uptime = due.seconds if self._uptime is None else min(self._uptime, due.seconds)
        else:
            self._wall = due.at if self._wall is None else min(self._wall, due.at)
        self.look_at_clocks()

    def _wait(self) -> float | None:
        """Seconds until the next one; None where there is none."""
        waits = [] if self._wall is None else [self._wall - self._clock.now()]
        waits += [] if self._uptime is None else [self._uptime - self._clock.uptime().seconds]
        return min(waits, default=None)

    def look_at_clocks(self) -> None:
        """Sets the alarm where there is none, or where a clock has jumped since. It costs a subtraction."""
        wait = self._wait()
        if wait is None:
            self.cancel()
            return
        rings_at = self._clock.monotonic() + max(0.0, wait)
        if self._alarm is None or not 0.0 <= rings_at - self._rings_at <= JUMPED:
            self.ring_in(max(0.0, wait))

    def ring_in(self, seconds: float) -> None:
        self.cancel()
        self._rings_at = self._clock.monotonic() + seconds
        self._alarm = self._clock.call_later(seconds, self._rings)

    def _rings(self) -> None:
        self._alarm = None
        self._ring()

    def cancel(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
