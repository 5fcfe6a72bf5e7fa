"""The transaction that changes a task: compare and swap, completion number, notice, event."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain

import msgspec

from meantime.kernel.change import Change
from meantime.kernel.model import Task
from meantime.kernel.notice_sources import Draft, SourceKind
from meantime.ports.store import CommitResult, Committed

from . import counters, search_columns
from .checksums import of_event, of_notice, seal
from .sql import queries

SQL = queries()
encode = msgspec.json.Encoder().encode

INSERT_TASK = SQL["insert_task"]
UPDATE_TASK = SQL["update_task"]
INSERT_EVENT = SQL["insert_event"]
TASK_AT = SQL["task_at"]
KEEP_NUMBERS = SQL["keep_numbers"]
INSERT_NOTICE = SQL["insert_notice"]
KINDS = tuple(SourceKind)  # a notice's row has the place of its kind among these
MAX_NUMBERS = 10_000  # threads whose number is remembered; others are read again
MAX_PLACES = 10_000  # tasks whose row is remembered, likewise
ROWS = (64, 16, 4, 1)  # of one statement: few sizes, so that all of them stay prepared
_CONFLICT = Committed(CommitResult.CONFLICT)
_LEASED = Committed(CommitResult.LEASED)


class Changes:
    """Applies changes for the writer. Completion numbers and those of events are counted here, since there is
    one writer. Notices and events, on which no change depends, are written once a group: a statement for
    each of them costs more than its row."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}  # the rows of tasks that have not ended
        self._notices: list[tuple[object, ...]] = []  # rows that are still to be written
        self._events: list[tuple[object, ...]] = []
        self._last_event: int | None = None
        self._numbers: dict[str, int] = {}
        self._given: dict[str, float] = {}  # threads with new numbers in this group, and when
        self._tallies = counters.Tallies()

    def apply(self, cursor: sqlite3.Cursor, change: Change, body: bytes, archived: bytes | None) -> Committed:
        """The first statement decides: if it changes nothing, nothing else is written."""
        task = change.task
        if change.notices and change.notices[0].joins:
            self.write_rows(cursor)
            if (refusal := _join(cursor, change)) is not None:
                return refusal
        if change.replaces == 0:
            cursor.execute(INSERT_TASK, _new_row(task, body))
            if not cursor.rowcount:
                return _in_the_way(cursor, task)
            self._places[task.id] = cursor.lastrowid or 0
        else:
            was_hidden = counters.was_hidden(cursor, change)
            if not cursor.execute(UPDATE_TASK, _next_row(change, body)).rowcount:
                return _CONFLICT
            self._tallies.note(change, was_hidden)
        if archived is not None and change.archives is not None:
            cursor.execute(SQL["insert_run"], (task.id, change.archives.run.number, archived))
        number = 0
        for draft in change.notices:
            if not draft.joins:
                number = self.add_notice(cursor, self._place(cursor, task.id), draft, task.run.number)
        if change.ends:
            self._places.pop(task.id, None)
        seq = 0
        event = change.event
        if event is not None:
            seq = self.add_event(
                cursor, event.kind, task.id, task.thread, event.run, str(event.status), event.at
            )
        return Committed(CommitResult.DONE, seq, number)

    def _place(self, cursor: sqlite3.Cursor, id: str) -> int:
        """The row of a task that is there."""
        place = self._places.get(id)
        if place is None:
            (place,) = cursor.execute(TASK_AT, (id,)).fetchone()
        return place

    def add_event(
        self, cursor: sqlite3.Cursor, kind: str, task: str, thread: str, run: int, status: str, at: float
    ) -> int:
        if self._last_event is None:
            (self._last_event,) = cursor.execute(SQL["last_event"]).fetchone()
        seq = self._last_event = (self._last_event or 0) + 1
        summed = of_event(kind, task, thread, run, status, at)
        self._events.append((seq, kind, task, thread, run, status, at, summed))
        return seq

    def add_notice(self, cursor: sqlite3.Cursor, source: int | None, draft: Draft, run: int = 0) -> int:
        """`run` is that of an ending; the body of every other notice says its own."""
        thread, when = draft.thread, draft.at
        number = self._numbers.get(thread)
        if number is None:
            row = cursor.execute(SQL["numbers_given"], (thread,)).fetchone()
            number = row[0] if row else 0
        number += 1
        self._numbers[thread] = number
        self._given[thread] = when
        state = "muted" if draft.muted else "unread"
        kind, seq, body = 0, 0, None
        if draft.body is not None:
            kind, run, seq, body = KINDS.index(draft.body.kind), *draft.body.ref[2:], seal(encode(draft.body))
        summed = of_notice(thread, number, kind, source, run, seq, when)
        self._notices.append((thread, number, kind, source, run, seq, state, when, body, summed))
        return number

    def write_rows(self, cursor: sqlite3.Cursor) -> None:
        for statement, rows in ((INSERT_NOTICE, self._notices), (INSERT_EVENT, self._events)):
            if rows:
                _insert_rows(cursor, statement, rows)
                rows.clear()

    def finish(self, cursor: sqlite3.Cursor) -> None:
        self.write_rows(cursor)
        if self._given:
            rows = [(thread, self._numbers[thread], when) for thread, when in self._given.items()]
            cursor.executemany(KEEP_NUMBERS, rows)
            self._given.clear()
        self._tallies.finish(cursor)
        if len(self._numbers) > MAX_NUMBERS:
            self._numbers.clear()
        if len(self._places) > MAX_PLACES:
            self._places.clear()

    def forget(self) -> None:
        """The group was rolled back: what was counted in it did not happen."""
        self._places.clear()
        self._notices.clear()
        self._events.clear()
        self._last_event = None
        self._numbers.clear()
        self._given.clear()
        self._tallies.forget()


def _insert_rows(cursor: sqlite3.Cursor, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """`INSERT … VALUES (?, …)` for many rows: SQLite opens a table and its indexes once a statement, which
    takes longer than a row."""
    at = 0
    for size in ROWS:
        while len(rows) - at >= size:
            values = list(chain.from_iterable(rows[at : at + size]))
            cursor.execute(_of_rows(statement, size), values)
            at += size


@cache
def _of_rows(statement: str, size: int) -> str:
    head, values, row = statement.rpartition("VALUES ")
    return head + values + ", ".join([row] * size)


def _join(cursor: sqlite3.Cursor, change: Change) -> Committed | None:
    """Gives the notice that is there new words, before anything else is written: where the task has moved on,
    or somebody has leased the notice, nothing is."""
    draft = change.notices[0]
    body = draft.body
    assert body is not None, "an ending joins no other notice"
    row = cursor.execute(SQL["task_of_version"], (change.task.id, change.replaces)).fetchone()
    if row is None:
        return _CONFLICT
    kind, source = KINDS.index(body.kind), row[0]
    key = (kind, source, body.run, body.seq)
    found = cursor.execute(SQL["joinable_notice"], key).fetchone()
    if found is None:
        return _LEASED
    thread, number = found
    summed = of_notice(thread, number, *key, draft.at)
    cursor.execute(SQL["join_notice"], (draft.at, seal(encode(body)), summed, thread, number))
    return None


def _new_row(task: Task, body: bytes) -> tuple[object, ...]:
    # A status as plain text: Python's sqlite3 looks for an adapter of any other type, each time it is bound.
    return (
        task.id, task.thread, str(task.status), task.version, task.run.number, task.batch or None,
        task.tool_call_id, 1 if task.hidden else 0, task.updated_at, body, *search_columns.columns(task),
    )  # fmt: skip


def _next_row(change: Change, body: bytes) -> tuple[object, ...]:
    task = change.task
    hidden = 1 if task.hidden else 0
    return (
        str(task.status), task.version, task.run.number, hidden, task.updated_at, body,
        task.session, task.run.duration, 1 if task.follow_up else 0, task.id, change.replaces,
    )  # fmt: skip


def _in_the_way(cursor: sqlite3.Cursor, task: Task) -> Committed:
    if cursor.execute(SQL["task_by_id"], (task.id,)).fetchone():
        return Committed(CommitResult.SAME_ID, existing=task.id)
    (existing,) = cursor.execute(SQL["task_of_call"], (task.thread, task.tool_call_id)).fetchone()
    return Committed(CommitResult.SAME_CALL, existing=existing)
