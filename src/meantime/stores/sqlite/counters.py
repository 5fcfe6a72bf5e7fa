"""Counters of what has ended and of what was told, kept by the writer: reading them costs no history."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any

from meantime.kernel.change import Change
from meantime.kernel.lifecycle import ACTIVE, Status
from meantime.kernel.model import Task
from meantime.kernel.stats import Statistics
from meantime.ports.store import Query

from . import search_columns
from .sql import queries

SQL = queries()
Key = tuple[str, bool, str, bool]  # status, whether it was resumed, agent, whether it is hidden


class Tallies:
    """The additions of one group of changes to the counters, written with the group."""

    def __init__(self) -> None:
        self._ended: dict[Key, list[float]] = {}  # tasks, those that have a duration, their seconds
        self._muted = 0

    def note(self, change: Change, was_hidden: bool) -> None:
        """When the row of the task was changed."""
        task = change.task
        if change.ends:
            self._add(task, task.hidden, 1)
            self._muted += not task.notify
        elif change.archives is not None:
            self._add(change.archives, change.archives.hidden, -1)
        elif was_hidden != task.hidden:
            self._add(task, was_hidden, -1)
            self._add(task, task.hidden, 1)

    def _add(self, task: Task, hidden: bool, sign: int) -> None:
        key = (task.status, task.run.number > 1, task.agent_or_kind, hidden)
        counted = self._ended.setdefault(key, [0, 0, 0.0])
        counted[0] += sign
        if task.run.duration is not None:
            counted[1] += sign
            counted[2] += sign * task.run.duration

    def finish(self, cursor: sqlite3.Cursor) -> None:
        if self._ended:
            cursor.executemany(SQL["count_ended"], [(*key, *more) for key, more in self._ended.items()])
        if self._muted:
            cursor.execute(SQL["count_settled"], (self._muted, "muted"))
        self.forget()

    def forget(self) -> None:
        self._ended.clear()
        self._muted = 0


def was_hidden(cursor: sqlite3.Cursor, change: Change) -> bool:
    """Before the row of an ended task is changed; only that one is counted by it."""
    task = change.task
    if change.ends or not task.ended:
        return task.hidden
    row = cursor.execute(SQL["is_hidden"], (task.id, change.replaces)).fetchone()
    return task.hidden if row is None else bool(row[0])


def statistics(db: sqlite3.Connection) -> Statistics:
    """Over everything that is not cleared."""
    active = db.execute(SQL["statistics_of_active"]).fetchall()
    return search_columns.gather([*active, *db.execute(SQL["statistics_of_ended"]).fetchall()])


def counts(db: sqlite3.Connection) -> Mapping[str, int]:
    """Tasks by status, and notices by state; none where there are none."""
    found: list[Any] = [*db.execute(SQL["active_counts"], (True,)), *db.execute(SQL["ended_counts"], (True,))]
    states = [*db.execute(SQL["open_by_state"]), *db.execute(SQL["settled_by_state"])]
    found += [(f"notices.{state}", count) for state, count in states]
    return {name: count for name, count in found if count}


def count(db: sqlite3.Connection, query: Query, most: int | None = None) -> int:
    """How many tasks have one of the statuses; for a query that asks for nothing else. Active tasks
    are counted one by one, and so no further than `most`."""
    wanted = frozenset(Status) if query.statuses is None else query.statuses
    ended = sum(
        tasks for status, tasks in db.execute(SQL["ended_counts"], (query.hidden,)) if status in wanted
    )
    if most is None:
        active = db.execute(SQL["active_counts"], (query.hidden,))
        return ended + sum(tasks for status, tasks in active if status in wanted)
    for status in sorted(wanted & ACTIVE):
        (active,) = db.execute(SQL["some_of_status"], (status, query.hidden, most)).fetchone()
        ended += active
    return min(ended, most)


def recount(db: sqlite3.Connection) -> None:
    """For rows that were copied from another ledger."""
    for name in ("forget_ended", "recount_ended", "recount_settled"):
        db.execute(SQL[name])
