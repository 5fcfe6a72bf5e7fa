"""Tasks to try things on: everything has a default, a test names only what it is about."""

from __future__ import annotations

from typing import Any

from meantime.kernel.lifecycle import ENDED, Status
from meantime.kernel.model import Cancelled, Completed, Failed, Lost, Outcome, Run, Task, TimedOut, Work

OUTCOMES: dict[Status, Outcome] = {
    Status.COMPLETED: Completed("done"),
    Status.FAILED: Failed("it broke"),
    Status.CANCELLED: Cancelled("user", "enough"),
    Status.TIMED_OUT: TimedOut(60.0),
    Status.LOST: Lost("the process is gone"),
}


def make_task(status: Status = Status.RUNNING, **fields: Any) -> Task:
    fields.setdefault("id", "t_2qx7m4kd9a")
    fields.setdefault("thread", "conv-1")
    fields.setdefault("work", Work("call", "tests:index_repo"))
    fields.setdefault("run", Run(queued_at=100.0, started_at=None if status is Status.QUEUED else 110.0))
    if status in ENDED:
        fields.setdefault("outcome", OUTCOMES[status])
    return Task(status=status, **fields)
