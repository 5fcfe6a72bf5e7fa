"""Seed 002's message bus: what happens to agents, as the four messages that its listeners know."""

from __future__ import annotations

from typing import Any

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Event, Task

from . import llxprt_texts

LAUNCHED, COMPLETED = "async-task-launched", "async-task-completed"
FAILED, CANCELLED = "async-task-failed", "async-task-cancelled"


def message(event: Event, task: Task) -> dict[str, Any] | None:
    """The message for an event of the journal and its task as it is then; None for events that the bus does
    not carry.
    """
    if task.work.kind != "agent":
        return None
    head: dict[str, Any] = {
        "taskId": task.id,
        "subagentName": llxprt_texts.name(task),
        "timestamp": round(event.at * 1_000),
    }
    if event.kind == "submitted":
        return {"type": LAUNCHED, **head, "goalPrompt": llxprt_texts.goal(task)}
    if event.kind != "ended":
        return None
    if event.status == Status.COMPLETED:
        found = {name: value for name, value in llxprt_texts.output(task).items() if name != "agent_id"}
        return {"type": COMPLETED, **head, "output": found}
    if event.status == Status.CANCELLED:
        return {"type": CANCELLED, **head}
    return {"type": FAILED, **head, "error": llxprt_texts.error(task)}
