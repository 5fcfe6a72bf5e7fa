"""The status text for every turn: what runs, and what ended but was not yet told. Never acknowledged."""

from __future__ import annotations

from collections.abc import Sequence

from .durations import duration
from .ids import shorten
from .lifecycle import Status
from .model import Task
from .payloads import one_line

RESTS = (
    "You were woken again and again by work that you had started when you were woken. "
    "The next wake waits {}; nothing is lost. If this is a loop, stop it."
)
HEAD = "Background tasks (you are told when each ends; do not poll):"
SHOWN = 20  # tasks named; the rest are counted
ASKED = 200  # characters of what a task asks


def reminder(
    active: Sequence[Task],
    untold: Sequence[Task],
    parked: int,
    now: float,
    rests: float = 0.0,
    unlisted: int = 0,
    events: int = 0,
    alarms: int = 0,
    coming: int = 0,
) -> str:
    """Nothing to say gives the empty string. `unlisted` were not told either, and are not in the list;
    `events` and `alarms` are notices that were not told yet, and `coming` are reminders that are not due."""
    if not (active or untold or parked or events or alarms or coming):
        return RESTS.format(duration(rests)) if rests else ""
    named = [task.id for task in (*active[:SHOWN], *untold[:SHOWN])]
    ids = shorten(named, (task.id for task in (*active, *untold)))
    lines = [HEAD]
    lines += [f"- {_active(task, ids[task.id], now)}" for task in active[:SHOWN]]
    lines += [f"- {ids[task.id]} {task.status}, not yet told: {_title(task)}" for task in untold[:SHOWN]]
    more = max(0, len(active) - SHOWN) + max(0, len(untold) - SHOWN) + unlisted
    if more:
        lines.append(f"- and {more} more")
    if events:
        lines.append(f"- reports of running tasks, not yet told: {events}")
    if alarms:
        lines.append(f"- reminders that are due, not yet told: {alarms}")
    if coming:
        lines.append(f"- reminders to come: {coming}")
    if parked:
        lines.append(f"- {parked} parked after failed deliveries")
    if rests:
        lines.append(RESTS.format(duration(rests)))
    return "\n".join(lines)


def _active(task: Task, id: str, now: float) -> str:
    """A task that runs as expected needs no word and no seconds: this text is repeated in every turn."""
    since = now - (task.run.started_at or task.run.queued_at)
    status = "" if task.status is Status.RUNNING else f" {task.status}"
    text = f"{id}{status} {duration(since).partition(' ')[0]}: {_title(task)}"
    if task.question is not None:
        asked = f"asks: {one_line(task.question.text, ASKED)}"
        choices = ", ".join(choice.id for choice in task.question.choices)
        return f"{text} ({asked}{f' [{one_line(choices, 100)}]' if choices else ''})"
    progress = task.progress
    if progress is None or task.status is Status.QUEUED:
        return text
    percent = f"{progress.percent:g} %" if progress.percent is not None else ""
    said = " ".join(part for part in (percent, progress.phase, progress.message) if part)
    return f"{text} ({one_line(said, 100)})" if said else text


def _title(task: Task) -> str:
    return one_line(task.title, 100)
