"""Time for in-process faults: the monotonic side only goes forward, the wall side jumps as it likes."""

from __future__ import annotations

import heapq
from collections.abc import Callable


class _Alarm:
    def __init__(self, at: float, callback: Callable[[], object]) -> None:
        self.at = at
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeClock:
    def __init__(self, wall: float = 1_700_000_000.0) -> None:
        self.passed = 0.0
        self._wall = wall
        self._alarms: list[tuple[float, int, _Alarm]] = []
        self._count = 0

    def now(self) -> float:
        return self._wall

    def monotonic(self) -> float:
        return self.passed

    def call_later(self, seconds: float, callback: Callable[[], object]) -> _Alarm:
        alarm = _Alarm(self.passed + max(0.0, seconds), callback)
        self._count += 1
        heapq.heappush(self._alarms, (alarm.at, self._count, alarm))
        return alarm

    def jump(self, seconds: float) -> None:
        """The wall clock only: somebody set it."""
        self._wall += seconds

    def advance(self, seconds: float) -> None:
        until = self.passed + seconds
        while self._due(until):
            self.ring()
        self._pass(until)

    def ring(self) -> bool:
        """Goes to the next alarm and rings it; False if there is none."""
        while self._alarms:
            at, _, alarm = heapq.heappop(self._alarms)
            callback = alarm.callback
            if callback is None:
                continue
            self._pass(max(at, self.passed))
            callback()
            return True
        return False

    def forget(self) -> None:
        """No alarm of a runtime that was cut off rings in the next one."""
        self._alarms.clear()

    def _due(self, until: float) -> bool:
        while self._alarms and self._alarms[0][2].callback is None:
            heapq.heappop(self._alarms)
        return bool(self._alarms) and self._alarms[0][0] <= until

    def _pass(self, until: float) -> None:
        self._wall += until - self.passed
        self.passed = until
