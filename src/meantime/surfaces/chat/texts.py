"""The words of seed 002, to the letter: what its slash commands answer, and what its model is told.

`Words.message` is a Renderer, as a dialect is; nothing else here knows how an ending is put.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from typing import Any, cast

from meantime.kernel.ids import display
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Cancelled, Completed, Failed, Lost, Task, TimedOut
from meantime.kernel.notices import Message, Notice, Part, payload_text
from meantime.kernel.payloads import as_text, clean, preview

MAX_ASYNC = 5
NO_TASKS = "No async tasks"
END_USAGE = "Usage: /task end <task-id>\n\nUse /tasks list to see task IDs."
NOT_A_LIMIT = "task-max-async must be a positive number or -1 for unlimited"
LAUNCHED = (
    "Async task '{name}' launched with ID {id}. "
    "The task is now running in the background. You will be notified when it completes. "
    "Use check_async_tasks to monitor progress."
)
LAUNCHED_SHOWN = "Launched async task: **{name}** (`{id}`)"  # Markdown: the terminal shows it bold
FULL = (
    "Cannot launch async task: maximum concurrent async tasks ({max}) reached. "
    "Currently {running} tasks running. "
    "Wait for tasks to complete or use check_async_tasks to review."
)
FULL_SHOWN = "[ERROR] Max async tasks ({max}) reached - {running} running"
ASYNC = (
    "When true, launches the command asynchronously without blocking. "
    "The foreground agent continues immediately and receives a notification when the task completes. "
    "Use check_async_tasks tool to monitor status."
)
CHECK = (
    "Check the status of async subagent tasks. "
    "With no arguments, lists all async tasks and their status. "
    "With a task_id, shows detailed status and emitted output for that specific task "
    "(useful for peeking at progress)."
)
CHECK_ID = (
    "Optional. The ID (or ID prefix) of a specific task to inspect. "
    "If provided, shows detailed status and any emitted output. "
    "If omitted, lists all async tasks with their status."
)
_STATUS = {
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "cancelled",
    Status.TIMED_OUT: "failed",
    Status.LOST: "failed",
}
_ICONS = {"running": "", "completed": "[OK]", "failed": "[ERROR]", "cancelled": ""}


def status(task: Task) -> str:
    """Everything that has not ended is running; a task that ran out of time, or was lost, has failed."""
    return _STATUS.get(task.status, "running")


def name(task: Task) -> str:
    return clean(task.title).replace("\n", " ")[:200]


def goal(task: Task) -> str:
    """What it was asked: a subagent's prompt, or the command."""
    input: Any = task.work.input
    given = cast("dict[str, Any]", input) if isinstance(input, dict) else {}
    asked: Any = given.get("prompt") or given.get("command") or task.work.name or task.title
    asked = shlex.join(map(str, cast("list[Any]", asked))) if isinstance(asked, list) else str(asked)
    return clean(asked).replace("\n", " ")


def seconds(task: Task, now: float) -> float:
    run = task.run
    began = run.started_at if run.started_at is not None else run.queued_at
    return run.duration if run.duration is not None else max(0.0, (run.ended_at or now) - began)


# -- slash commands


def tasks_list(tasks: Sequence[Task], now: float | None = None) -> str:
    if not tasks:
        return NO_TASKS
    now = time.time() if now is None else now
    ids = [task.id for task in tasks]
    lines = ["Async Tasks:", ""]
    for place, task in enumerate(tasks, 1):
        elapsed = "" if task.ended else " elapsed"
        lines += [
            f"{place}. {_ICONS[status(task)]} [{display(task.id, ids)}] {name(task)}",
            f"   Status: {status(task)} | Duration: {seconds(task, now):.1f}s{elapsed}",
            f"   Goal: {goal(task)[:60]}...",
            "",
        ]
    return "\n".join(lines)


def not_found(ref: str) -> str:
    return f"Task not found: {ref}"


def ambiguous(ref: str, tasks: Sequence[Task], bullet: str = "  ") -> str:
    ids = [task.id for task in tasks]
    found = [f"{bullet}{display(task.id, ids)}: {name(task)} ({status(task)})" for task in tasks]
    return "\n".join([f"Multiple tasks match '{ref}'. Be more specific:", *found])


def not_running(task: Task) -> str:
    return f"Task {display(task.id)} is not running (status: {status(task)})"


def cancelled(task: Task) -> str:
    return f"Cancelled task: {name(task)} ({display(task.id)})"


def cancel_failed(task: Task) -> str:
    return f"Failed to cancel task: {display(task.id)}"


def prefix(task_id: str) -> str:
    """Before each line that a followed task says."""
    return f"[async:{display(task_id)}] "


# -- the tool check_async_tasks


def checked_list(tasks: Sequence[Task]) -> str:
    ids = [task.id for task in tasks]
    found = [f"- {status(task)}: {name(task)} ({display(task.id, ids)})" for task in tasks]
    return "\n".join(["Async Tasks:", *found]) if found else "No async tasks."


def peek(task: Task, emitted: str, now: float | None = None) -> str:
    """One task in detail; `emitted` is what it has said so far, where it runs (fenced, for a model)."""
    now = time.time() if now is None else now
    lines = [
        f"Task: {name(task)} ({task.id})",
        f"Status: {status(task)}",
        f"{'Duration' if task.ended else 'Elapsed'}: {seconds(task, now):.1f}s",
        f"Goal: {goal(task)}",
        "",
    ]
    match task.outcome:
        case Completed():
            lines += ["Output:", _json(_completed(task, task.outcome))]
        case Failed() | TimedOut() | Lost():
            lines.append(f"Error: {_error(task.outcome)}")
        case Cancelled():
            lines.append("Task was cancelled.")
        case None:
            lines.append(f"Emitted so far:\n{emitted}" if emitted else "Emitted so far: (none)")
    return "\n".join(lines)


# -- what the model is told


class Words:
    """An ending as seed 002 tells it: in the form that the synchronous answer would have had."""

    def message(self, notice: Notice) -> Message:
        task = notice.task
        match notice.outcome:
            case Completed():
                said = f"Async task '{name(task)}' completed:\n{_json(_completed(task, notice.outcome))}"
            case Cancelled():
                said = f"Async task '{name(task)}' cancelled:\n{_json(_ended(task, 'CANCELLED'))}"
            case Failed() | TimedOut() | Lost():
                error = {**_ended(task, "ERROR"), "error": _error(notice.outcome)}
                said = f"Async task '{name(task)}' failed:\n{_json(error)}"
        return Message("user", (Part(note(said)),))


def reminder(running: Sequence[Task], pending: Sequence[Task]) -> str:
    """For every turn; nothing to say gives the empty string."""
    lines = ["Async tasks status:"]
    if running:
        lines.append(f"Running: {_named(running)}")
    if pending:
        lines.append(f"Completed (pending acknowledgement): {_named(pending)}")
    return note("\n".join(lines)) if len(lines) > 1 else ""


def note(text: str) -> str:
    return f"---\nSystem Note: {text}\n---"


def _named(tasks: Sequence[Task]) -> str:
    ids = [task.id for task in tasks]
    return ", ".join(f"[{display(task.id, ids)}] {name(task)}" for task in tasks)


def _completed(task: Task, outcome: Completed) -> dict[str, Any]:
    found = {**_ended(task, outcome.terminate_reason), "emitted_vars": outcome.emitted_vars}
    said = clean(payload_text(outcome))
    if outcome.spill is not None:
        said += f"\nThe whole output is in {outcome.spill.path}"
    return {**found, "final_message": said} if said else found


def _ended(task: Task, reason: str) -> dict[str, Any]:
    return {"agent_id": task.id, "terminate_reason": reason, "emitted_vars": {}}


def _error(outcome: Failed | TimedOut | Lost) -> str:
    match outcome:
        case Failed():
            said = outcome.message
        case TimedOut():
            said = f"It did not end within {outcome.seconds:g} s."
        case Lost():
            said = outcome.reason
    partial = preview(outcome.spill) if outcome.spill else as_text(outcome.partial)
    return clean(f"{said}\n{partial}".strip())


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
