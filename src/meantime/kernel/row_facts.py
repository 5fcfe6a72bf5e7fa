"""A task as one row of a list: the facts beside the task itself, and the line that says what it does now."""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct

from .durations import duration, iso
from .lifecycle import Status
from .limits import WATCH
from .model import Cancelled, Completed, Failed, Lost, Outcome, Progress, Task, TimedOut
from .notices import payload_text
from .payloads import one_line
from .questions import Question
from .timeline import key_argument
from .watches import so_far

LINE = 200  # characters of what a task does now
TITLE = 200
MOST_FACTS = 1_200  # tasks that are asked about at once
COUNTED_CHILDREN = 1_000
# Seconds without a sign of life, after which a running task counts as silent. A model may think for a while.
SILENT = {"shell": 30.0, "agent": 60.0}
SILENT_OTHERWISE = 60.0
_PLURALS = {"agent": "agents", "shell": "commands", "call": "functions", "tool": "tools"}


class EndingDelivery(Struct, frozen=True, omit_defaults=True):
    """Whether the ending of a task's last run was told."""

    state: str  # of kernel/notices.py
    number: int
    turn: str | None = None  # which holds it, or told it
    at: float | None = None  # when it was told; when the run ended if it was not
    reason: str | None = None  # why it is parked
    turn_number: int | None = None  # the turn among those of its thread that told something


class RowFacts(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The part of a row that is not in its task."""

    id: str
    delivery: EndingDelivery | None = None
    said: str = ""  # the last line of its output
    said_at: float | None = None
    position: int | None = None  # in its queue: 1 is next
    slots_used: int = 0  # of the limit that a queued task waits for
    slots_total: int = 0
    slots_of: str = ""  # the kind of work that the limit is for; empty is all of it
    missing: str = ""  # why no worker can perform a queued task
    children: int = 0
    usual_ms: int | None = None
    usual_runs: int = 0


def last_event_at(task: Task, facts: RowFacts) -> float:
    """The time of its last sign of life: a change, its progress, or its output."""
    said = task.progress.updated_at if task.progress is not None else 0.0
    return max(task.updated_at, said, facts.said_at or 0.0)


def silent_after(task: Task, facts: RowFacts) -> float:
    """Seconds after its last event from which on a running task is called silent. Work that has not reported
    anything yet may never do so: it is silent only once it takes longer than usual. 0: it never is, such as a
    watch, which says nothing as long as it finds nothing."""
    if task.work.kind == WATCH:
        return 0.0
    seconds = SILENT.get(task.work.kind, SILENT_OTHERWISE)
    reports = task.progress is not None or facts.said_at is not None
    return seconds if reports or facts.usual_ms is None else max(seconds, facts.usual_ms / 1_000)


def now_line(task: Task, facts: RowFacts) -> str:
    """One line: why it is queued, what it asks, does or said last; of an ended task, how it ended."""
    match task.status:
        case Status.QUEUED:
            return _queued(task, facts)
        case Status.WAITING if task.question is not None:
            return _asking(task.question)
        case Status.CANCELLING:
            by = task.run.cancel.reason if task.run.cancel is not None else ""
            return one_line(f"stopping: {by}" if by else "stopping", LINE)
        case _ if task.outcome is not None:
            return _line_of(task.work.kind, task.outcome)
        case _:
            doing = so_far(task) if task.work.kind == WATCH else _doing(task.progress) or facts.said
            if task.run.claim is not None:
                doing = " · ".join([f"on {task.run.claim.worker}", *([doing] if doing else [])])
            return one_line(doing, LINE)


def _asking(question: Question) -> str:
    """A permission is known by what would be done, which its text need not say."""
    what = key_argument(question.arguments) if question.kind == "permission" else ""
    return one_line(f"Allow {question.subject}: {what}" if what else question.text[: 4 * LINE], LINE)


def _queued(task: Task, facts: RowFacts) -> str:
    if facts.position is None and task.run.not_before is not None:
        return f"starts at {iso(task.run.not_before.at)}"
    if facts.missing:
        return one_line(f"waits: {facts.missing}", LINE)
    if task.place and not facts.slots_total:
        return f"waits for a worker of {task.place}"
    if not facts.slots_total:
        return "waits for a slot"
    slots = f"{facts.slots_used} of {facts.slots_total}"
    return f"waits for a slot · {slots} {_PLURALS.get(facts.slots_of, facts.slots_of)}".rstrip()


def _doing(progress: Progress | None) -> str:
    if progress is None:
        return ""
    if not progress.last_tools or progress.phase not in ("", progress.last_tools[-1]):
        return progress.message or progress.phase
    tool = progress.last_tools[-1]
    times = progress.tool_calls.get(tool, 1)
    used = f"{tool} ×{times}" if times > 1 else tool
    return f"{used} · {progress.message}" if progress.message not in ("", tool) else used


def _ended(outcome: Outcome) -> str:
    match outcome:
        case Completed():
            return payload_text(outcome)
        case Failed(message=message):
            return message
        case TimedOut(seconds=seconds):
            return f"timed out after {duration(seconds)}"
        case Lost(reason=reason):
            return reason
        case Cancelled(by=by, reason=reason):
            return reason or (f"cancelled by {by}" if by else "")
        case _:
            assert_never(outcome)


def _line_of(kind: str, outcome: Outcome) -> str:
    """The first line of how it ended; of a command the last of its output, which says what came of it."""
    if kind == "shell" and isinstance(outcome, Completed):
        return _last_line(_ended(outcome))
    if kind == "shell" and isinstance(outcome, Failed) and outcome.exit_code:
        said = _last_line(outcome.partial) if isinstance(outcome.partial, str) else ""
        return (
            one_line(f"exit {outcome.exit_code} · {said}", LINE) if said else one_line(outcome.message, LINE)
        )
    lines = _ended(outcome)[: 20 * LINE].splitlines()
    return one_line(next((line.strip() for line in lines if line.strip()), ""), LINE)


def _last_line(text: str) -> str:
    """Only the end of a long text is looked at."""
    lines = text[-20 * LINE :].splitlines()[::-1]
    return one_line(next((line.strip() for line in lines if line.strip()), ""), LINE)
