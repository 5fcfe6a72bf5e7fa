"""Our tasks in the words of seed 003."""

from __future__ import annotations

from datetime import datetime
from types import MappingProxyType
from typing import Any

from meantime.dialects.jaato.jaato_tasks import ESTIMATE, WORDS, error_of, estimate, noted
from meantime.kernel.model import Task

from .protocol import TaskHandle, TaskResult, TaskStatus

STATUS = MappingProxyType({status: TaskStatus(word) for status, word in WORDS.items()})
_OURS = frozenset({"plugin", "tool", "like", ESTIMATE})


def handle_of(task: Task) -> TaskHandle:
    """A timeout that was reduced is noted in its metadata."""
    metadata = {name: value for name, value in task.meta.items() if name not in _OURS}
    return TaskHandle(
        task_id=task.id,
        plugin_name=task.meta["plugin"],
        tool_name=task.meta["tool"],
        created_at=datetime.fromtimestamp(task.created_at),
        estimated_duration_seconds=estimate(task),
        metadata=noted(task, metadata) or None,
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


def _time(seconds: float | None) -> datetime | None:
    """Local and without a zone, as the protocol's own `datetime.now()`."""
    return None if seconds is None else datetime.fromtimestamp(seconds)
