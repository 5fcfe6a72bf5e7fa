"""The dictionaries that a model gets in place of a result, to the letter of seed 003."""

from __future__ import annotations

from typing import Any

from meantime.kernel.model import Json

from .capable import RunsInBackground
from .protocol import TaskHandle


def backgrounded(handle: TaskHandle, threshold: float | None, *, by_hand: bool) -> dict[str, Any]:
    """The call goes on as a task; where a person was quicker than the threshold, it says so."""
    why = f"Task exceeded {threshold}s threshold, continuing in background. "
    if by_hand:
        why = "Task was sent to the background. "
    return {
        "auto_backgrounded": True,
        "task_id": handle.task_id,
        "threshold_seconds": threshold,
        "message": f"{why}Use task_id '{handle.task_id}' to check status.",
    }


def started(
    plugin: RunsInBackground, name: str, arguments: dict[str, Any], meta: dict[str, Json]
) -> dict[str, Any]:
    """A call that says itself that it wants to be in the background."""
    try:
        handle = plugin.start_task(name, arguments, meta=meta)
    except Exception as problem:
        return {"success": False, "error": str(problem)}
    return {
        "success": True,
        "task_id": handle.task_id,
        "plugin_name": handle.plugin_name,
        "tool_name": handle.tool_name,
        "estimated_duration_seconds": handle.estimated_duration_seconds,
        "message": f"Task started in background. Use task_id '{handle.task_id}' to check status.",
    }
