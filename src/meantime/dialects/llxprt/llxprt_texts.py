"""Seed 002's texts, to the letter. Output of a task is cleaned before it is put into one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, cast

from meantime.kernel.bounds import values
from meantime.kernel.ids import display, shorten
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Cancelled, Completed, Ending, Outcome, Task, TimedOut
from meantime.kernel.notices import broke_off, payload_text
from meantime.kernel.payloads import clean, one_line, preview
from meantime.kernel.reminder import SHOWN
from meantime.toolset import task_text

WORDS = {
    Status.QUEUED: "running",
    Status.RUNNING: "running",
    Status.WAITING: "running",
    Status.CANCELLING: "running",
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
    Status.CANCELLED: "cancelled",
    Status.TIMED_OUT: "failed",
    Status.LOST: "failed",
}
TAGS = {"running": "[RUNNING]", "completed": "[DONE]", "failed": "[FAILED]", "cancelled": "[CANCELLED]"}
ICONS = {"running": "", "completed": "[OK]", "failed": "[ERROR]", "cancelled": ""}
GOALS = ("goal", "prompt", "command")  # of a work's input: the first that there is
NAMED = 50  # characters of a command's title
USAGE = "Usage: /task {verb} <task-id>\n\nUse /tasks list to see task IDs."
MAX_ASYNC = "task-max-async must be a positive number or -1 for unlimited"


def word(task: Task) -> str:
    return WORDS[task.status]


def name(task: Task) -> str:
    """The subagent's; the seed has no other tasks, and a thread may: a command goes by its title."""
    if task.work.kind == "agent":
        return one_line(task.agent_or_kind, 100)
    title = one_line(task.title)
    return title if len(title) <= NAMED else f"{title[: NAMED - 1]}…"


def ids(tasks: Sequence[Task]) -> dict[str, str]:
    """The first eight characters of each, more where two would be the same."""
    every = [task.id for task in tasks]
    return shorten(every, every)


def some(tasks: Sequence[Task], short: Mapping[str, str]) -> str:
    """The first of them by name; the rest are counted."""
    named = [f"[{short[task.id]}] {name(task)}" for task in tasks[:SHOWN]]
    more = [f"and {len(tasks) - SHOWN} more"] if len(tasks) > SHOWN else []
    return ", ".join([*named, *more])


def note(message: str) -> str:
    return f"---\nSystem Note: {message}\n---"


def goal(task: Task) -> str:
    """Its request: a subagent's prompt, or the command."""
    input: Any = task.work.input
    given = cast("dict[str, Any]", input) if isinstance(input, dict) else {}
    asked: Any = task.run.prompt or next((given[key] for key in GOALS if given.get(key)), "")
    line = shlex.join(map(str, cast("list[Any]", asked))) if isinstance(asked, list) else str(asked)
    return clean(line)


def launched(task: Task) -> str:
    said = (
        f"Async task '{name(task)}' launched with ID {task.id}. The task is now running in the background. "
        "You will be notified when it completes. Use check_async_tasks to monitor progress."
    )
    return "\n".join([said, *task_text.reduced(task)])


def launched_on_screen(task: Task) -> str:
    return f" Launched async task: **{name(task)}** (`{display(task.id)}`)"


def full(most: int, running: int) -> str:
    return (
        f"Cannot launch async task: maximum concurrent async tasks ({most}) reached. "
        f"Currently {running} tasks running. Wait for tasks to complete or use check_async_tasks to review."
    )


def full_on_screen(most: int, running: int) -> str:
    return f"[ERROR] Max async tasks ({most}) reached - {running} running"


def listed(tasks: Sequence[Task]) -> str:
    short = ids(tasks)
    rows = [f"- {word(task)}: {name(task)} ({short[task.id]})" for task in tasks]
    return "\n".join(["Async Tasks:", *rows]) if rows else "No async tasks."


def several(ref: str, tasks: Sequence[Task], bullet: str) -> str:
    short = ids(tasks)
    rows = [f"{bullet}{short[task.id]}: {name(task)} ({word(task)})" for task in tasks]
    return "\n".join([f"Multiple tasks match '{ref}'. Be more specific:", *rows])


def summary(tasks: Sequence[Task]) -> str:
    """For a system instruction; empty where there is nothing."""
    if not tasks:
        return ""
    found = [word(task) for task in tasks]
    counts = ", ".join(f"{found.count(one)} {one}" for one in ("running", "completed", "failed"))
    short = ids(tasks)
    rows = [
        f"[{place}] {name(task)} ({short[task.id]}) - {TAGS[word(task)]} {word(task)}"
        for place, task in enumerate(tasks, 1)
    ]
    return "\n".join([f"\n[ASYNC TASKS: {len(tasks)} total - {counts}]", *rows])


def on_screen(tasks: Sequence[Task], now: float) -> str:
    """`/tasks list`."""
    if not tasks:
        return "No async tasks"
    short = ids(tasks)
    lines = ["Async Tasks:", ""]
    for place, task in enumerate(tasks, 1):
        took = f"{seconds(task, now):.1f}s" + ("" if task.ended else " elapsed")
        asked = goal(task).replace("\n", " ")[:60]
        lines += [
            f"{place}. {ICONS[word(task)]} [{short[task.id]}] {name(task)}",
            f"   Status: {word(task)} | Duration: {took}",
            f"   Goal: {asked}...",
            "",
        ]
    return "\n".join(lines)


def seconds(task: Task, now: float) -> float:
    run = task.run
    if run.duration is not None:
        return run.duration
    return max(0.0, now - (run.started_at or run.queued_at))


def output(task: Task) -> dict[str, Any]:
    """An ending in the form of the synchronous answer."""
    match task.outcome:
        case Completed() as done:
            ending = Ending(task.id, done.emitted_vars, done.final_message, done.terminate_reason)
            return completed(ending, (done.final_message or payload_text(done)) + whole(done))
        case outcome:
            reason = "TIMEOUT" if isinstance(outcome, TimedOut) else "ERROR"
            return {
                "agent_id": task.id,
                "terminate_reason": getattr(outcome, "terminate_reason", reason) or reason,
                "emitted_vars": task_text.cleaned(values(outcome.emitted_vars if outcome else {})),
                "error": task_text.cleaned(error(task)),
            }


def completed(ending: Ending, said: str) -> dict[str, Any]:
    found = {
        "agent_id": ending.id,
        "terminate_reason": ending.terminate_reason or "GOAL",
        "emitted_vars": task_text.cleaned(values(ending.emitted)),
    }
    return {**found, **({"final_message": task_text.cleaned(said)} if said else {})}


def error(task: Task) -> str:
    """With what there is of an output."""
    outcome = task.outcome
    if outcome is None or isinstance(outcome, Completed | Cancelled):
        return ""
    late = f"Timed out after {outcome.seconds:g} seconds.\n" if isinstance(outcome, TimedOut) else ""
    return f"{late}{payload_text(outcome)}{whole(outcome)}".rstrip("\n")


def whole(outcome: Outcome) -> str:
    """Where the output is that is over the limits."""
    return f"\nThe whole output is in {outcome.spill.path}" if outcome.spill else ""


def ended(task: Task) -> str:
    """The text of an ending for the model."""
    if task.status is Status.CANCELLED:
        said = f"Async task '{name(task)}' was cancelled ({task.id}).{_failed(task)}"
        return note("\n".join([said, *task_text.reduced(task)]))
    how = "completed" if task.status is Status.COMPLETED else "failed"
    return note(
        "\n".join([f"Async task '{name(task)}' {how}:", as_json(output(task)), *task_text.reduced(task)])
    )


def peek(task: Task, emitted: str, now: float) -> str:
    """`emitted`: what it gave so far, where it runs."""
    lines = [
        f"Task: {name(task)} ({task.id})",
        f"Status: {word(task)}",
        f"{'Duration' if task.ended else 'Elapsed'}: {seconds(task, now):.1f}s",
        f"Goal: {preview(goal(task))}",
        *task_text.reduced(task),
        "",
    ]
    if not task.ended:
        lines += ["Emitted so far:", emitted] if emitted else ["Emitted so far: (none)"]
    elif task.status is Status.COMPLETED:
        lines += ["Output:", as_json(output(task))]
    elif task.status is Status.CANCELLED:
        lines.append(f"Task was cancelled.{_failed(task)}")
    else:
        lines.append(f"Error: {task_text.cleaned(error(task))}")
    return "\n".join(lines)


def _failed(task: Task) -> str:
    said = task_text.cleaned(broke_off(task.outcome))
    return f" {said}" if said else ""


def as_json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
