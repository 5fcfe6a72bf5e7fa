"""The status text for every turn: what runs, and what ended but was not yet told. Never acknowledged."""

from __future__ import annotations

from collections.abc import Sequence

from .durations import duration
from .ids import display
from .lifecycle import Status
from .model import Task
from .payloads import clean

SHOWN = 20  # tasks named; the rest are counted
ASKED = 200  # characters of what a task asks


def reminder(active: Sequence[Task], untold: Sequence[Task], parked: int, now: float) -> str:
    """Nothing to say gives the empty string."""
    if not (active or untold or parked):
        return ""
    ids = [task.id for task in (*active, *untold)]
    counts = [f"{len(active)} active"] if active else []
    counts += [f"{len(untold)} ended, not yet told"] if untold else []
    counts += [f"{parked} parked after failed deliveries"] if parked else []
    lines = ["Background tasks: " + ", ".join(counts) + "."]
    lines += [f"- {_active(task, ids, now)}" for task in active[:SHOWN]]
    lines += [f"- {display(task.id, ids)} {task.status}: {_title(task)}" for task in untold[:SHOWN]]
    more = max(0, len(active) - SHOWN) + max(0, len(untold) - SHOWN)
    if more:
        lines.append(f"- and {more} more")
    lines.append("You will be told when each one ends; do not poll.")
    return "\n".join(lines)


def _active(task: Task, ids: Sequence[str], now: float) -> str:
    since = task.run.started_at or task.run.queued_at
    text = f"{display(task.id, ids)} {task.status} {duration(now - since)}: {_title(task)}"
    if task.question is not None:
        asked = f"asks: {_line(task.question.text)[:ASKED]}"
        choices = ", ".join(choice.id for choice in task.question.choices)
        return f"{text} ({asked}{f' [{_line(choices)[:100]}]' if choices else ''})"
    progress = task.progress
    if progress is None or task.status is Status.QUEUED:
        return text
    percent = f"{progress.percent:g} %" if progress.percent is not None else ""
    said = " ".join(part for part in (percent, progress.phase, progress.message) if part)
    return f"{text} ({_line(said)[:100]})" if said else text


def _title(task: Task) -> str:
    return _line(task.title)[:100]


def _line(text: str) -> str:
    return clean(text).replace("\n", " ")
