"""Time for in-process faults: the public fake clock, which can also ring by itself and be cut off."""

from __future__ import annotations

import heapq

from meantime.testing.fake_clock import FakeClock


class FaultClock(FakeClock):
    def ring(self) -> bool:
        """Goes to the next alarm and rings it; False if there is none."""
        while self._alarms:
            _, _, alarm = heapq.heappop(self._alarms)
            if not alarm.cancelled:
                self._move(alarm.due)
                alarm.ring()
                return True
        return False

    def forget(self) -> None:
        """No alarm of a runtime that was cut off rings in the next one."""
        self._alarms.clear()
