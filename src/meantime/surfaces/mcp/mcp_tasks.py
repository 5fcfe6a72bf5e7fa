"""Our tasks as MCP tasks: by the extension io.modelcontextprotocol/tasks (SEP-2663), and by 2025-11-25.

By the extension a tool that says that it failed has *completed*, with an error in its result; *failed* is
for a call of which there is no result. By 2025-11-25 both are *failed*.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import Any, cast

from meantime.kernel.errors import MeantimeError
from meantime.kernel.ids import task_id
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Completed, Lost, Task
from meantime.kernel.notices import payload_text
from meantime.kernel.payloads import as_text, one_line
from meantime.ports.tasks import Tasks
from meantime.toolset.task_text import progress

from .elicitation import input_requests

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
MARK = "mcp"  # in a task's meta: it was made as a task of MCP
POLL = 1_000  # milliseconds that a client leaves between two looks
ENTROPY = 26  # bytes, of which five bits each are used: 130 bits, not to be guessed
NO_RESULT = -32603

_STATUS = {
    Status.QUEUED: "working",
    Status.RUNNING: "working",
    Status.WAITING: "input_required",
    Status.CANCELLING: "working",
    Status.COMPLETED: "completed",
    Status.FAILED: "completed",
    Status.TIMED_OUT: "completed",
    Status.CANCELLED: "cancelled",
    Status.LOST: "failed",
}
_STATUS_2025 = {**_STATUS, Status.FAILED: "failed", Status.TIMED_OUT: "failed"}


def new_id() -> str:
    return task_id(os.urandom(ENTROPY))


def is_made_here(id: str) -> bool:
    """Whether it looks like an id of `new_id`."""
    return id.startswith("t_") and len(id) == 2 + ENTROPY


def is_ours(task: Task, id: str) -> bool:
    """Whole ids only: a beginning that fits is a guess that came true."""
    return task.id == id and MARK in task.meta


def state(task: Task) -> dict[str, Any]:
    """By the extension; without its result."""
    return {**_head(task, _STATUS), "ttlMs": None, "pollIntervalMs": POLL}


def state_2025(task: Task) -> dict[str, Any]:
    return {**_head(task, _STATUS_2025), "ttl": None, "pollInterval": POLL}


async def whole_state(tasks: Tasks, task: Task) -> dict[str, Any]:
    """By the extension, with how it ended."""
    found = state(task)
    if found["status"] == "failed":
        found["error"] = {"code": NO_RESULT, "message": ending_text(task)}
    elif found["status"] == "completed":
        found["result"] = {"resultType": "complete", **await result(tasks, task)}
    elif task.question is not None:
        found["inputRequests"] = input_requests(task.question)
    return found


async def result(tasks: Tasks, task: Task) -> dict[str, Any]:
    """The result of the call that the task was made for."""
    if not isinstance(task.outcome, Completed):
        return {"content": [_text(ending_text(task))], "isError": True}
    try:
        value = await tasks.result(task.id, task.thread)
    except MeantimeError as problem:  # its file is gone, or it is too big for a link
        return {"content": [_text(f"{ending_text(task)}\n{problem}")], "isError": False}
    found: dict[str, Any] = {"content": [_text(as_text(value))], "isError": False}
    if isinstance(value, dict):
        found["structuredContent"] = cast("dict[str, Any]", value)
    return found


def ending_text(task: Task) -> str:
    if task.outcome is None:
        return ""
    text = payload_text(task.outcome)
    return text or (task.outcome.reason if isinstance(task.outcome, Lost) else f"It {_words(task)}.")


def _words(task: Task) -> str:
    return {Status.TIMED_OUT: "timed out"}.get(task.status, str(task.status))


def _head(task: Task, statuses: dict[Status, str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "taskId": task.id,
        "status": statuses[task.status],
        "createdAt": _iso(task.created_at),
        "lastUpdatedAt": _iso(max(task.updated_at, task.created_at)),
    }
    said = progress(task) or one_line(task.title)
    return {**found, "statusMessage": said if not task.ended else f"{task.status}: {said}"}


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
