"""The system's clock, as ports/clock.py wants it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from functools import cache

from meantime.kernel.due_times import Uptime
from meantime.ports.clock import Alarm
from meantime.system.platform import boot


class SystemClock:
    now = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def uptime(self) -> Uptime:
        return Uptime(_boot(), _since_boot())

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        return asyncio.get_running_loop().call_later(seconds, callback)


@cache
def _boot() -> str:
    """Where the system does not say which start it is, no other process is known to be of the same one."""
    return boot() or f"unknown-{secrets.token_hex(8)}"


def _since_boot() -> float:
    """CLOCK_BOOTTIME is Linux's. Elsewhere the time that the machine sleeps may not be counted."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


_BOOTTIME: int | None = getattr(time, "CLOCK_BOOTTIME", None)
