"""How tasks and notices look: plain lines, as wide as they are. The screen fits and colours them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from meantime.kernel.durations import duration
from meantime.kernel.ids import display
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Cancelled, Failed, Task
from meantime.kernel.notices import Notice
from meantime.kernel.payloads import clean

MARKS = {Status.COMPLETED: "✓", Status.CANCELLED: "■", Status.QUEUED: "○"}
LONGEST = 120  # characters of what came of a task
NOW = 40  # characters of what it does now


def mark(status: Status) -> str:
    if status in (Status.RUNNING, Status.WAITING, Status.CANCELLING):
        return "●"
    return MARKS.get(status, "✗")


def took(task: Task) -> str:
    """How long it ran, or runs already."""
    run = task.run
    seconds = run.duration
    if seconds is None:
        seconds = 0.0 if run.started_at is None else max(0.0, time.time() - run.started_at)
    return f"{seconds:.1f}s" if seconds < 60 else duration(seconds)


def told(notice: Notice, telling: int = 1) -> str:
    """`[1] ✓ count its lines      0.4s  858237 lines of Python`"""
    task = notice.task
    return (
        f"[{notice.number}] {mark(task.status)} {task.title:<18}  {took(task):>5}  {finding(notice, telling)}"
    )


def finding(notice: Notice, telling: int = 1) -> str:
    """What came of it, in one line."""
    outcome, said = notice.outcome, last_lines(notice.text, telling)
    if isinstance(outcome, Failed) and outcome.exit_code is not None:
        return f"exit code {outcome.exit_code}: {said}"
    if isinstance(outcome, Cancelled):
        return "stopped, as you asked" if outcome.by in ("user", "interrupt") else f"stopped by {outcome.by}"
    return said


def last_lines(text: str, count: int = 1) -> str:
    lines = [line.strip() for line in clean(text).splitlines() if line.strip()]
    return shorten(", ".join(lines[-count:]), LONGEST)


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def table(rows: Iterable[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell; the last one ends where it ends."""
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return [line.rstrip() for line in lines]


def overview(tasks: Sequence[Task], now: dict[str, str]) -> list[str]:
    """Every task with what it does now; the children of one come below it."""
    rows = [("ID", "STATUS", "TIME", "TASK", "NOW")]
    for task in family(tasks):
        title = f"└ {task.title}" if task.parent else task.title
        status = f"{mark(task.status)} {task.status}"
        rows.append((display(task.id), status, took(task), title, shorten(now.get(task.id, ""), NOW)))
    return table(rows)


def family(tasks: Sequence[Task]) -> list[Task]:
    ordered: list[Task] = []
    for task in (task for task in tasks if task.parent is None):
        ordered += [task, *(child for child in tasks if child.parent == task.id)]
    return ordered
