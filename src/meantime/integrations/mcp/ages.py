"""How long a call has been under way, for an owner that did not begin it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from meantime.kernel.model import Task
from meantime.ports.clock import Clock

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def beginning(clock: Clock) -> str:
    """Now, for the ledger: by the monotonic clock, which begins anew with every start of the machine."""
    return f"{boot()}.{clock.monotonic():.3f}" if boot() else ""


def age(began: str, task: Task, clock: Clock) -> float:
    """Where the machine was restarted, or nothing was written down, only the wall clock is left."""
    of, _, at = began.partition(".")
    try:
        if of and of == boot():
            return max(0.0, clock.monotonic() - float(at))
    except ValueError:
        pass
    started = task.run.started_at
    return 0.0 if started is None else max(0.0, clock.now() - started)


@cache
def boot() -> str:
    try:
        return BOOT_ID.read_text().strip().replace("-", "")[:12]
    except OSError:
        return ""
