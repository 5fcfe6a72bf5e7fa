"""Time is a parameter. Tests bring their own; nothing below `app` reads the system's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Alarm(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Wall time in seconds, for people. It may jump; nothing is ordered or timed by it."""
        ...

    def monotonic(self) -> float:
        """Seconds that only go forward: every timeout and duration is measured with it."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        """Calls back once on the event loop, unless the alarm is cancelled first."""
        ...
