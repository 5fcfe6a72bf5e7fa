"""How long a call has been under way, for an owner that did not begin it."""

from __future__ import annotations

from meantime.boot import boot
from meantime.kernel.model import Task
from meantime.ports.clock import Clock


def beginning(clock: Clock) -> str:
    """Now, for the ledger: by the monotonic clock, which begins anew with every start of the machine."""
    return f"{_start()}.{clock.monotonic():.3f}" if _start() else ""


def age(began: str, task: Task, clock: Clock) -> float:
    """Where the machine was restarted, or nothing was written down, only the wall clock is left."""
    of, _, at = began.partition(".")
    try:
        if of and of == _start():
            return max(0.0, clock.monotonic() - float(at))
    except ValueError:
        pass
    started = task.run.started_at
    return 0.0 if started is None else max(0.0, clock.now() - started)


def _start() -> str:
    """The id of the machine; short, because it is beside the server's own id."""
    return boot().replace("-", "")[:12]
