"""How tasks and notices look: the CLI's glyphs, times and tables. The screen fits and colours them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from meantime.kernel.ids import display
from meantime.kernel.model import Cancelled, Failed, Task
from meantime.kernel.notices import Notice
from meantime.surfaces.terminal.task_format import LOOKS, span, table
from meantime.surfaces.terminal.terminal_text import fitted, plain

LONGEST = 120  # characters of what came of a task
NOW = 40  # characters of what it does now


def status(task: Task) -> str:
    return f"{LOOKS[task.status][0]} {task.status}"


def took(task: Task) -> str:
    """How long it ran, or runs already."""
    run = task.run
    if run.duration is not None:
        return span(run.duration)
    return span(0.0 if run.started_at is None else max(0.0, time.time() - run.started_at))


def told(notice: Notice, telling: int = 1) -> str:
    """`[1] ✓ count its lines      0.4s  858237 lines of Python`"""
    task = notice.task
    glyph = LOOKS[task.status][0]
    return f"[{notice.number}] {glyph} {task.title:<18}  {took(task):>5}  {finding(notice, telling)}"


def finding(notice: Notice, telling: int = 1) -> str:
    """Its result, in one line."""
    outcome, said = notice.outcome, last_lines(notice.text, telling)
    if isinstance(outcome, Failed) and outcome.exit_code is not None:
        return f"exit code {outcome.exit_code}: {said}"
    if isinstance(outcome, Cancelled):
        return "stopped, as you asked" if outcome.by in ("user", "interrupt") else f"stopped by {outcome.by}"
    return said


def last_lines(text: str, count: int = 1) -> str:
    lines = [line for line in map(plain, text.splitlines()) if line]
    return fitted(", ".join(lines[-count:]), LONGEST)


def overview(tasks: Sequence[Task], now: dict[str, str]) -> list[str]:
    """Every task with what it does now; the children of one come below it."""
    rows: list[tuple[str, ...]] = []
    for task in family(tasks):
        title = f"└ {task.title}" if task.parent else task.title
        doing = fitted(now.get(task.id, ""), NOW)
        rows.append((display(task.id), status(task), took(task), title, doing))
    return table(("ID", "STATUS", "TIME", "TASK", "NOW"), rows, shrink=3, right=2)


def family(tasks: Sequence[Task]) -> list[Task]:
    ordered: list[Task] = []
    for task in (task for task in tasks if task.parent is None):
        ordered += [task, *(child for child in tasks if child.parent == task.id)]
    return ordered


def summary(tasks: Sequence[Task], heard: Sequence[Notice]) -> list[str]:
    numbers = {notice.task_id: str(notice.number) for notice in heard}
    rows = [
        (display(task.id), status(task), took(task), numbers.get(task.id, "-"), task.title) for task in tasks
    ]
    return table(("ID", "STATUS", "TIME", "TOLD", "TASK"), rows, shrink=4, right=2)
