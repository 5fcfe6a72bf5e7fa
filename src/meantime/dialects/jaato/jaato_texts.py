"""Seed 003's texts and dictionaries, to the letter: for the dialect and for `meantime.plugins`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

START = """Start a tool execution in the background.

Use this when you anticipate a tool call will take significant time
(e.g., long builds, complex searches, external API calls). The task
runs asynchronously and you can continue with other work.

Returns a task_id you can use to check status or get results later."""
STATUS = "Check the current status of a background task."
RESULT = """Get the result of a background task.

If the task is still running, returns current status without blocking.
Use this after checking status shows COMPLETED or FAILED."""
CANCEL = "Cancel a running background task."
LIST = "List all active background tasks across all plugins."
CAPABLE = """List all tools that support background execution.

Use this to discover which tools can be run in background mode."""
AUTO_APPROVED = ("getBackgroundTaskStatus", "listBackgroundTasks", "listBackgroundCapableTools")
TASKS_COMMAND = ("tasks", "Background tasks, running and ended", "/tasks [plugin_name]")
CANCEL_COMMAND = ("cancel", "Cancel a background task", "/cancel <task_id>")

# The seed's system instructions.
_WHEN = """## Background Task Execution

You have the ability to run long-running tool executions in the background.

**When to use background execution:**
- Commands that typically take >{threshold:g} seconds (builds, installs, complex searches)
- External API calls with high latency
- Operations where you can do other useful work while waiting

**Workflow:**
1. Call `startBackgroundTask` with the plugin, tool, and arguments
2. Continue with other work or inform the user the task is running
3. Periodically check `getBackgroundTaskStatus`
4. Once complete, use `getBackgroundTaskResult` to get the output

**Available tools:**
"""
_TOOLS = {
    "listBackgroundCapableTools": "See which tools support background mode",
    "startBackgroundTask": "Start a task in background",
    "getBackgroundTaskStatus": "Check if a task is done",
    "getBackgroundTaskResult": "Get the result",
    "cancelBackgroundTask": "Cancel if no longer needed",
    "listBackgroundTasks": "See all active background tasks",
}
_AUTO = """
**Auto-backgrounded calls:**
A tool that you call as usual and that takes too long answers with `"auto_backgrounded": true` and a
`task_id`. It has not failed and goes on: do not call it again, get its result by that `task_id`.
"""


def instructions(threshold: float, tools: Collection[str] | None = None, *, auto: bool = False) -> str:
    """For an agent that has these of the six tools; None is all. `auto`: its other tools may become tasks by
    themselves."""
    listed = [f"- `{name}` - {text}\n" for name, text in _TOOLS.items() if tools is None or name in tools]
    return _WHEN.format(threshold=threshold) + "".join(listed) + (_AUTO if auto else "")


# -- what goes wrong


def not_found(task_id: str) -> str:
    return f"Task '{task_id}' not found"


def plugin_not_capable(plugin: str, capable: Sequence[str]) -> str:
    return f"Plugin '{plugin}' does not support background execution. Capable plugins: {list(capable)}"


def tool_not_capable(plugin: str, tool: str) -> str:
    return f"Tool '{tool}' in plugin '{plugin}' does not support background execution"


def not_capable(plugin: str, tool: str, capable: Sequence[str]) -> str:
    return tool_not_capable(plugin, tool) if plugin in capable else plugin_not_capable(plugin, capable)


def not_started(why: str) -> dict[str, Any]:
    return {"success": False, "error": why}


# -- what is answered


def started(task_id: str, plugin: str, tool: str, estimate: float | None) -> dict[str, Any]:
    return {
        "success": True,
        "task_id": task_id,
        "plugin_name": plugin,
        "tool_name": tool,
        "estimated_duration_seconds": estimate,
        "message": f"Task started in background. Use task_id '{task_id}' to check status.",
    }


def backgrounded(task_id: str, threshold: float | None, *, by_hand: bool = False) -> dict[str, Any]:
    """The call goes on as a task; where a person was quicker than the threshold, it says so."""
    why = f"Task exceeded {threshold}s threshold, continuing in background. "
    if by_hand:
        why = "Task was sent to the background. "
    return {
        "auto_backgrounded": True,
        "task_id": task_id,
        "threshold_seconds": threshold,
        "message": f"{why}Use task_id '{task_id}' to check status.",
    }


def status(task_id: str, plugin: str, word: str) -> dict[str, Any]:
    return {"task_id": task_id, "plugin_name": plugin, "status": word}


def result(
    task_id: str, plugin: str, word: str, result: Any, error: str | None, seconds: float | None
) -> dict[str, Any]:
    return {**status(task_id, plugin, word), "result": result, "error": error, "duration_seconds": seconds}


def cancelled(task_id: str, success: bool) -> dict[str, Any]:
    return {"task_id": task_id, "cancelled": success}


def listed(tasks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"tasks": list(tasks), "count": len(tasks)}


def one(task_id: str, plugin: str, tool: str, created_at: str, estimate: float | None) -> dict[str, Any]:
    """One line of that list."""
    return {
        "task_id": task_id,
        "plugin_name": plugin,
        "tool_name": tool,
        "created_at": created_at,
        "estimated_duration_seconds": estimate,
    }


def capable(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    tools = [{"plugin_name": plugin, "tool_name": tool} for plugin, tool in pairs]
    return {"tools": tools, "count": len(tools)}
