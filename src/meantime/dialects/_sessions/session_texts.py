"""Tasks in the words of seeds 000 and 001: statuses, lists, details."""

from __future__ import annotations

from typing import Any, assert_never

from meantime.kernel.durations import duration, iso
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Cancelled, Completed, Failed, Lost, Outcome, Task, TimedOut
from meantime.kernel.notices import broke_off, payload_text
from meantime.kernel.payloads import as_text, clean, one_line
from meantime.ports.asks import Answer
from meantime.toolset.task_text import cleaned, reduced


def status_word(status: Status, run: int) -> str:
    match status:
        case Status.QUEUED | Status.RUNNING | Status.WAITING | Status.CANCELLING:
            return "resumed" if run > 1 else "running"
        case Status.COMPLETED:
            return "completed"
        case Status.FAILED | Status.TIMED_OUT | Status.LOST:
            return "error"
        case Status.CANCELLED:
            return "cancelled"
        case _:
            assert_never(status)


def word(task: Task) -> str:
    return status_word(task.status, task.run.number)


def marked(task: Task, *, forks: bool) -> str:
    """The task's id, with what is special about it."""
    resumed = " (resumed)" if task.resume_count > 0 else ""
    return f"{task.id}{resumed}{' (forked)' if forks and task.forked else ''}"


def took(task: Task, now: float) -> str:
    """How long the run took, or has taken until now."""
    if task.run.duration is not None:
        return duration(task.run.duration)
    return duration(max(0.0, now - (task.run.started_at or task.run.queued_at)))


def row(task: Task, now: float, *, forks: bool) -> str:
    """In a list."""
    who = one_line(task.agent_or_kind, 60)
    return f'- {marked(task, forks=forks)} [{word(task)}] {who}: "{one_line(task.title)}" ({took(task, now)})'


def detail(answer: Answer, *, forks: bool) -> str:
    """All that there is to know now: how it stands and what it did last, or how it ended and with what."""
    task = answer.task
    lines = [
        f"Task: {marked(task, forks=forks)}",
        f"Description: {one_line(task.title)}",
        f"Agent: {one_line(task.agent_or_kind, 60)}",
        f"Status: {word(task)}",
        f"{'Duration' if task.ended else 'Elapsed'}: {took(task, answer.now)}",
    ]
    lines += reduced(task)
    if task.resume_count:
        lines.append(f"Resume count: {task.resume_count}")
    if not task.ended:
        return "\n".join([*lines, *_progress(task), *_so_far(answer)])
    assert task.outcome is not None
    problem = error_of(task.outcome)
    if problem:
        lines.append(f"Error: {problem}")
    body = clean(as_text(answer.output.value) if answer.output else "")
    label = "Result" if isinstance(task.outcome, Completed) else "Partial output"
    if body or not problem:
        lines += ["", f"{label}:", body or "(none)"]
    if task.outcome.spill is not None:
        lines.append(f"The whole output is in {task.outcome.spill.path}")
    return "\n".join(lines)


def _progress(task: Task) -> list[str]:
    found = task.progress
    if found is None:
        return ["Tool calls: 0"]
    lines = [f"Tool calls: {found.calls}"]
    if found.last_tools:
        lines.append(f"Recent tools: {', '.join(one_line(name, 60) for name in found.last_tools)}")
    said = one_line(" ".join(part for part in (found.phase, found.message) if part))
    if said:
        lines.append(f"Progress: {said}")
    return [*lines, f"Last update: {iso(found.updated_at)}"]


def _so_far(answer: Answer) -> list[str]:
    said = clean(answer.output.text) if answer.output else ""
    return ["", "Output so far:", said] if said else []


def error_of(outcome: Outcome) -> str:
    match outcome:
        case Failed():
            return clean(outcome.message)
        case TimedOut():
            return f"Timed out after {duration(outcome.seconds)}."
        case Lost():
            return clean(outcome.reason)
        case Cancelled():
            return clean(" ".join(filter(None, (outcome.reason, broke_off(outcome)))))
        case Completed():
            return ""
        case _:
            assert_never(outcome)


def data_of(task: Task) -> dict[str, Any]:
    """For programs, by the names that seed 001's wire has."""
    run, progress = task.run, task.progress
    outcome = task.outcome
    found: dict[str, Any] = {
        "task_id": task.id,
        "sessionID": task.session_id,
        "parentSessionID": task.thread,
        "parentMessageID": task.message_id,
        "description": task.title,
        "agent": task.agent_or_kind,
        "status": word(task),
        "batchId": task.batch or None,
        "resumeCount": task.resume_count,
        "isForked": task.forked,
        "startedAt": iso(run.started_at or run.queued_at),
        "completedAt": iso(run.ended_at),
        "retrievedAt": iso(run.retrieved_at),
    }
    if progress is not None:
        found["progress"] = {
            "toolCalls": progress.calls,
            "toolCallsByName": progress.tool_calls,
            "lastTools": list(progress.last_tools),
            "lastUpdate": iso(progress.updated_at),
        }
    if isinstance(outcome, Completed):
        found["result"] = payload_text(outcome)
    elif outcome is not None:
        found["error"] = error_of(outcome) or None
    return cleaned(found)
