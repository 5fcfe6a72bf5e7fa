"""The dictionaries that a model gets in place of a result, to the letter of seed 003."""

from __future__ import annotations

from typing import Any

from meantime.dialects.jaato import jaato_texts
from meantime.dialects.jaato.jaato_tasks import NOTE
from meantime.kernel.model import Json

from .background_mixin import RunsInBackground
from .protocol import TaskHandle


def backgrounded(handle: TaskHandle, threshold: float | None, *, by_hand: bool) -> dict[str, Any]:
    return _noted(handle, jaato_texts.backgrounded(handle.task_id, threshold, by_hand=by_hand))


def started(
    plugin: RunsInBackground, name: str, arguments: dict[str, Any], meta: dict[str, Json]
) -> dict[str, Any]:
    """A call that says itself that it wants to be in the background."""
    try:
        handle = plugin.start_task(name, arguments, meta=meta)
    except Exception as problem:
        return jaato_texts.not_started(str(problem))
    return started_as(handle)


def started_as(handle: TaskHandle) -> dict[str, Any]:
    return _noted(
        handle,
        jaato_texts.started(
            handle.task_id, handle.plugin_name, handle.tool_name, handle.estimated_duration_seconds
        ),
    )


def _noted(handle: TaskHandle, answer: dict[str, Any]) -> dict[str, Any]:
    note = (handle.metadata or {}).get(NOTE)
    return {**answer, NOTE: note} if note else answer
