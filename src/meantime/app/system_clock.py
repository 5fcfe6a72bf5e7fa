"""The system's clock, as ports/clock.py wants it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from meantime.ports.clock import Alarm


class SystemClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        return asyncio.get_running_loop().call_later(seconds, callback)
