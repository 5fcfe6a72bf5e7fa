"""Counters of what has ended and of what was told, kept by the writer: reading them costs no history."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from meantime.kernel.change import Change
from meantime.kernel.lifecycle import ACTIVE, ENDED, Status
from meantime.kernel.limits import WATCH
from meantime.kernel.model import BatchCount, Task
from meantime.kernel.notices import Notice
from meantime.kernel.stats import Statistics
from meantime.ports.store import Query

from . import search_columns
from .sql import queries

SQL = queries()
MAX_BATCHES = 10_000  # batches, or threads, whose numbers are remembered; others are read again
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(tuple[int, int, int, int]).decode
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


class BatchTallies:
    """How batches stand, and how many tasks of each thread are active, for the notices of endings. A number
    that is not known is read before the row of its task is collected, and counted along from then on: no row
    that is still held back is missed.
    """

    def __init__(self) -> None:
        self._batches: dict[tuple[str, str], BatchCount] = {}  # by thread and batch
        self._active: dict[str, int] = {}  # by thread, without watches

    def prepare(self, cursor: sqlite3.Cursor, change: Change) -> None:
        """Before the row of the task is changed."""
        if change.replaces and not change.ends and change.archives is None:
            return
        for task in (change.task, change.archives or change.task):
            if task.thread not in self._active:
                found = cursor.execute(SQL["active_of_thread"], (task.thread, WATCH))
                (self._active[task.thread],) = found.fetchone()
            if task.batch and (task.thread, task.batch) not in self._batches:
                rows = cursor.execute(SQL["batch_count"], (task.batch, task.thread)).fetchall()
                found = batch_count(task.batch, rows) or BatchCount(task.batch, 0, 0)
                self._batches[task.thread, task.batch] = found

    def note(self, change: Change) -> BatchCount | None:
        """When the row of the task was changed: how its batch stands, where it is another by that."""
        task, left = change.task, change.archives
        starts = change.replaces == 0
        ends = not starts and change.ends
        if not (starts or ends or left is not None):
            return None
        if task.work.kind != WATCH:
            self._active[task.thread] += -1 if ends else 1
        if left is None:
            return self._add(task, ended=ends, total=starts)
        self._add(left, ended=-1, total=-1)
        return self._add(task, ended=0, total=1)

    def _add(self, task: Task, *, ended: int, total: int) -> BatchCount | None:
        was = self._batches.get((task.thread, task.batch))
        if was is None:
            return None
        failed = 0 if task.status is Status.COMPLETED else ended
        count = BatchCount(was.id, was.ended + ended, was.total + total, was.failed + failed)
        self._batches[task.thread, task.batch] = count
        return count

    def stood(self, task: Task, count: BatchCount | None) -> str:
        """The text that is kept with the notice of its ending."""
        if count is None:
            return ""
        return _encode((count.ended, count.failed, count.total, self._active[task.thread])).decode()

    def forget_batch(self, thread: str, batch: str | None) -> None:
        """A task of it was deleted."""
        self._batches.pop((thread, batch or ""), None)

    def finish(self) -> None:
        if len(self._batches) > MAX_BATCHES or len(self._active) > MAX_BATCHES:
            self.forget()

    def forget(self) -> None:
        self._batches.clear()
        self._active.clear()


def with_standing(notice: Notice, stood: str) -> Notice:
    """The notice of an ending, with how things stood then. Raises one of BAD where that is damaged."""
    ended, failed, total, running = _decode(stood)
    return replace(notice, batch=BatchCount(notice.task.batch, ended, total, failed), running=running)


def batch_count(batch: str, rows: Sequence[tuple[str, int]]) -> BatchCount | None:
    """By the statuses of its tasks; None where there are none."""
    by_status = dict(rows)
    if not by_status:
        return None
    ended = sum(count for status, count in by_status.items() if status in ENDED)
    good = by_status.get(Status.COMPLETED, 0)
    return BatchCount(batch, ended, sum(by_status.values()), ended - good)


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
