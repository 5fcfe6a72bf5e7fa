"""Time is a parameter. Tests bring their own; nothing below `app` reads the system's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from meantime.kernel.due_times import Uptime
from meantime.system.platform import is_this_boot


class Alarm(Protocol):
    def cancel(self) -> None: ...


class Clock(Protocol):
    def now(self) -> float:
        """Wall time in seconds, for people. It may jump; nothing is ordered or timed by it."""
        ...

    def monotonic(self) -> float:
        """Seconds that only go forward: every timeout and duration is measured with it."""
        ...

    def uptime(self) -> Uptime:
        """Seconds since the machine was started. They go on while it sleeps, which those of `monotonic` need
        not, and they mean something only within one start of the machine."""
        ...

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Alarm:
        """Calls back once on the event loop, unless the alarm is cancelled first."""
        ...


async def sleep(clock: Clock, seconds: float) -> None:
    """Waits for so long by this clock."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    alarm = clock.call_later(seconds, lambda: over.done() or over.set_result(None))
    try:
        await over
    finally:
        alarm.cancel()


def age(clock: Clock, boot: str, began: float | None, began_at: float | None) -> float:
    """Seconds since something began, for an owner that was not there then.

    All processes share the monotonic clock, which begins anew with every start of the machine. After
    one, or where nothing was written down, only the wall clock is left.

    Args:
        clock: The clock of this process.
        boot: The start of the machine in which it began, or the beginning of its id; empty if nobody knows.
        began: When, by the monotonic clock; None if nobody knows.
        began_at: When, by the wall clock; None or 0 if nobody knows: then it has just begun.

    Returns:
        Seconds, never below 0: a wall clock may have been set back.
    """
    if began is not None and is_this_boot(boot):
        return max(0.0, clock.monotonic() - began)
    return max(0.0, clock.now() - began_at) if began_at else 0.0
