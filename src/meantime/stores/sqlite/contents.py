"""Contents of a ledger, read row by row: the structure of the file may be sound around rows that are not.

Each table is read in slices, in the order of its key, so that a long history can be read in the background.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from meantime.kernel.model import Task

from . import search_columns
from .checksums import (
    BAD,
    decode_message,
    decode_task,
    decode_words,
    is_sealed,
    of_event,
    of_notice,
    verify,
)
from .schedule_rows import ScheduleRow
from .sql import queries

SQL = queries()
SLICE = 250  # rows that are read in one go: a few milliseconds
_CONTRADICTS = "its columns contradict its body"


class StoredRow(NamedTuple):
    """A task, as its columns tell it."""

    seq: int
    id: str
    thread: str
    status: str
    version: int
    run: int
    batch: str | None
    tool_call: str | None
    hidden: int
    updated: float
    agent: str
    words: str
    session: str | None
    duration: float | None
    kind: str | None
    parent: str | None
    follows: int
    body: Any

    def problem(self) -> str:
        """Why it cannot be used, or the empty string. The columns repeat what the body says; an earlier
        version did not keep all of them."""
        try:
            task = decode_task(self.body)
        except BAD as problem:
            return str(problem)
        few = (self.id, self.thread, self.status, self.run)
        if few != (task.id, task.thread, task.status, task.run.number):
            return _CONTRADICTS
        return _CONTRADICTS if is_sealed(self.body) and self._columns() != _columns(task, self.kind) else ""

    def _columns(self) -> tuple[object, ...]:
        return (*self[4:14], *(self[14:16] if self.kind is not None else ()), self.follows)


def _columns(task: Task, kind: str | None) -> tuple[object, ...]:
    """Without the newest columns where the row, from an older schema, does not have them."""
    kept = (task.version, task.run.number, task.batch or None, task.tool_call_id, task.hidden)
    found = search_columns.columns(task)
    return (*kept, task.updated_at, *(found if kind is not None else found[:4]), bool(task.follow_up))


class Bad(NamedTuple):
    """A row that cannot be used."""

    what: str  # its name, for people
    problem: str
    row: tuple[Any, ...]
    key: object  # by which it is counted once, however often it is met
    park: tuple[str, tuple[Any, ...]] | None = None  # the statement that parks its notice, and its arguments


class Table(NamedTuple):
    query: str
    first: tuple[Any, ...]  # before every key
    judge: Callable[[tuple[Any, ...]], Bad | None]

    def slice(self, db: sqlite3.Connection, after: Sequence[Any]) -> tuple[list[Bad], tuple[Any, ...] | None]:
        """The bad rows of the next slice, and the last key that was looked at; None when there is no more."""
        rows = db.execute(SQL[self.query], (*after, SLICE)).fetchall()
        bad = [found for row in rows if (found := self.judge(row)) is not None]
        return bad, rows[-1][: len(self.first)] if len(rows) == SLICE else None


def _task(row: tuple[Any, ...]) -> Bad | None:
    task = StoredRow(*row)
    problem = task.problem()
    if not problem:
        return None
    return Bad(
        f"{task.id} of thread {task.thread}", problem, row, task.body, ("park_unreadable", (task.seq,))
    )


def run_problem(task_id: object, run: object, body: Any) -> str:
    try:
        task = decode_task(body)
    except BAD as problem:
        return str(problem)
    return "" if (task.id, task.run.number) == (task_id, run) else _CONTRADICTS


def _run(row: tuple[Any, ...]) -> Bad | None:
    problem = run_problem(*row)
    return Bad(f"run {row[1]} of {row[0]}", problem, row, row[2]) if problem else None


def notice_problem(
    thread: object,
    number: object,
    kind: object,
    source: object,
    run: object,
    seq: object,
    at: Any,
    stood: Any,
    stored: int | None,
    words: Any,
) -> str:
    try:
        verify(stored, of_notice(thread, number, kind, source, run, seq, at, stood))
        if kind and decode_words(words).ref[2:] != (run, seq):
            return _CONTRADICTS
    except BAD as problem:
        return str(problem)
    return ""


def _notice(row: tuple[Any, ...]) -> Bad | None:
    problem = notice_problem(*row)
    thread, number = row[:2]
    if not problem:
        return None
    park = ("park_one_unreadable", (thread, number))
    return Bad(f"notice {number} of thread {thread}", problem, row, row[:2], park)


def entry_problem(body: Any) -> str:
    try:
        decode_message(body)
    except BAD as problem:
        return str(problem)
    return ""


def _entry(row: tuple[Any, ...]) -> Bad | None:
    problem = entry_problem(row[2])
    name = f"entry {row[1]} of the transcript of thread {row[0]}"
    return Bad(name, problem, row, row[2]) if problem else None


def event_problem(
    kind: object, task_id: object, thread: object, run: object, status: object, at: Any, stored: int | None
) -> str:
    try:
        verify(stored, of_event(kind, task_id, thread, run, status, at))
    except BAD as problem:
        return str(problem)
    return ""


def _event(row: tuple[Any, ...]) -> Bad | None:
    problem = event_problem(*row[1:])
    return Bad(f"event {row[0]} of the journal", problem, row, row[0]) if problem else None


def _schedule(row: tuple[Any, ...]) -> Bad | None:
    schedule = ScheduleRow(*row)
    problem = schedule.problem()
    if not problem:
        return None
    name = f"reminder {schedule.id} of thread {schedule.thread}"
    return Bad(name, problem, row, schedule.body, ("set_schedule_aside", (schedule.seq,)))


TABLES = (
    Table("contents", (-1,), _task),
    Table("contents_of_runs", ("", -1), _run),
    Table("contents_of_notices", ("", -1), _notice),
    Table("contents_of_schedules", (-1,), _schedule),
    Table("contents_of_transcripts", ("", -1), _entry),
    Table("events_after", (-1,), _event),
)


def find_all(db: sqlite3.Connection) -> Iterator[Bad]:
    for table in TABLES:
        after: tuple[Any, ...] | None = table.first
        while after is not None:
            bad, after = table.slice(db, after)
            yield from bad


def unindexed(db: sqlite3.Connection, table: Table, after: Sequence[Any]) -> str:
    """The rows of the next slice that the indexes lack. For a ledger that is too large for SQLite's own
    comparison, which cannot be done in slices.
    """
    query = _UNINDEXED.get(table.query)
    row = db.execute(SQL[query], (*after, SLICE)).fetchone() if query else None
    return f"row {row[0]} is missing from an index" if row else ""


_UNINDEXED = {"contents": "unindexed_tasks", "contents_of_notices": "unindexed_notices"}
