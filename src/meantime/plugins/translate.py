"""Our tasks in the words of seed 003."""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType
from typing import Any

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Cancelled, Completed, Failed, Outcome, Task, TimedOut

from .protocol import TaskHandle, TaskResult, TaskStatus

STATUS = MappingProxyType(
    {
        Status.QUEUED: TaskStatus.PENDING,
        Status.RUNNING: TaskStatus.RUNNING,
        Status.WAITING: TaskStatus.RUNNING,
        Status.CANCELLING: TaskStatus.RUNNING,
        Status.COMPLETED: TaskStatus.COMPLETED,
        Status.FAILED: TaskStatus.FAILED,
        Status.CANCELLED: TaskStatus.CANCELLED,
        Status.TIMED_OUT: TaskStatus.TIMEOUT,
        Status.LOST: TaskStatus.FAILED,
    }
)
_OURS = frozenset({"plugin", "tool", "like"})


def handle_of(task: Task, estimate: float | None = None) -> TaskHandle:
    return TaskHandle(
        task_id=task.id,
        plugin_name=task.meta["plugin"],
        tool_name=task.meta["tool"],
        created_at=datetime.fromtimestamp(task.created_at),
        estimated_duration_seconds=estimate,
        metadata={name: value for name, value in task.meta.items() if name not in _OURS} or None,
    )


def result_of(task: Task, result: Any) -> TaskResult:
    return TaskResult(
        task_id=task.id,
        status=STATUS[task.status],
        result=result,
        error=error_of(task.outcome),
        started_at=_time(task.run.started_at),
        completed_at=_time(task.run.ended_at),
        duration_seconds=task.run.duration,
    )


def error_of(outcome: Outcome | None) -> str | None:
    match outcome:
        case None | Completed():
            return None
        case Failed():
            return outcome.message
        case Cancelled():
            by = f" by {outcome.by}" if outcome.by else ""
            return f"The task was cancelled{by}." + _left_behind(outcome.abandoned)
        case TimedOut():
            return f"The task did not end within {outcome.seconds:g} s." + _left_behind(outcome.abandoned)
        case _:
            return outcome.reason


def _left_behind(abandoned: bool) -> str:
    return " It would not stop and was left behind." if abandoned else ""


def _time(seconds: float | None) -> datetime | None:
    """Local and without a zone, as the protocol's own `datetime.now()`."""
    return None if seconds is None else datetime.fromtimestamp(seconds)
