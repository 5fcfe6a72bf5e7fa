"""The transaction that changes a task: compare and swap, completion number, notice, event."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection
from functools import cache
from itertools import chain, islice

import msgspec

from meantime.kernel.change import Change
from meantime.kernel.model import Task
from meantime.kernel.notice_sources import Draft, SourceKind
from meantime.ports.store import CommitResult, Committed

from . import counters
from .checksums import of_event, of_notice, seal
from .sql import queries

SQL = queries()
encode = msgspec.json.Encoder().encode

INSERT_TASKS = SQL["insert_task"]
INSERT_TASK = f"{INSERT_TASKS} ON CONFLICT DO NOTHING"
UPDATE_TASK = SQL["update_task"]
UPDATE_TASKS = SQL["update_tasks"]
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
_ROW = re.compile(r"(.*\bVALUES )(\((?:[^()]|\([^()]*\))*\))(.*)", re.DOTALL)


class RowRefused(Exception):
    """One of the rows that were written together was refused, and it is not known which."""


class Changes:
    """Applies changes for the writer. Numbers of rows, completions and events are counted here, since there
    is one writer. Rows are collected, and written once a group: a statement for each of them costs more than
    its row, and the interpreter changes hands with each.

    With `together` so are the rows of tasks, as if none were refused, which is rare. Where one is, RowRefused
    is raised: the whole group has to be rolled back, and applied anew with a statement for each change."""

    def __init__(self) -> None:
        self.together = False
        self._places: dict[str, int] = {}  # the rows of tasks that have not ended
        self._created: list[tuple[object, ...]] = []  # rows that are still to be written
        self._changed: dict[str, tuple[object, ...]] = {}  # by task
        self._notices: list[tuple[object, ...]] = []
        self._events: list[tuple[object, ...]] = []
        self._last_task: int | None = None
        self._last_event: int | None = None
        self._numbers: dict[str, int] = {}
        self._given: dict[str, float] = {}  # threads with new numbers in this group, and when
        self._tallies = counters.Tallies()
        self.batches = counters.BatchTallies()

    def apply(
        self, cursor: sqlite3.Cursor, change: Change, body: bytearray, archived: bytearray | None
    ) -> Committed:
        """The row of the task decides: if it is not written, nothing else is."""
        task = change.task
        if change.notices and change.notices[0].joins:
            self.write_rows(cursor)
            if (refusal := _join(cursor, change)) is not None:
                return refusal
        self.batches.prepare(cursor, change)
        written = self._create if change.replaces == 0 else self._update
        if (refusal := written(cursor, change, body)) is not None:
            return refusal
        if archived is not None and change.archives is not None:
            cursor.execute(SQL["insert_run"], (task.id, change.archives.run.number, archived))
            if change.archives.batch != task.batch:
                cursor.execute(SQL["join_batch"], (task.batch, task.id))
        batch, ends, number = self.batches.note(change), change.ends, 0
        stood = self.batches.stood(task, batch) if ends else ""
        for draft in change.notices:
            if not draft.joins:
                number = self.add_notice(cursor, self._place(cursor, task.id), draft, task.run.number, stood)
        if ends:
            self._places.pop(task.id, None)
        seq = 0
        event = change.event
        if event is not None:
            seq = self.add_event(
                cursor, event.kind, task.id, task.thread, event.run, str(event.status), event.at
            )
        return Committed(CommitResult.DONE, seq, number, batch=batch)

    def _create(self, cursor: sqlite3.Cursor, change: Change, body: bytearray) -> Committed | None:
        task = change.task
        if self._last_task is None:
            (self._last_task,) = cursor.execute(SQL["last_task"]).fetchone()
        place = (self._last_task or 0) + 1
        row = _new_row(place, task, body)
        if self.together:
            self._created.append(row)
        elif not cursor.execute(INSERT_TASK, row).rowcount:
            return _in_the_way(cursor, task)
        self._last_task = self._places[task.id] = place
        return None

    def _update(self, cursor: sqlite3.Cursor, change: Change, body: bytearray) -> Committed | None:
        id = change.task.id
        if id in self._changed:
            self.write_rows(cursor)  # this one comes second
            is_alone = True
        else:
            is_alone = not self.together or change.archives is not None
        was_hidden = counters.was_hidden(cursor, change)
        row = _next_row(change, body)
        if not is_alone:
            self._changed[id] = row
        elif not cursor.execute(UPDATE_TASK, row).rowcount:
            return _CONFLICT
        self._tallies.note(change, was_hidden)
        return None

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

    def add_notice(
        self, cursor: sqlite3.Cursor, source: int | None, draft: Draft, run: int = 0, stood: str = ""
    ) -> int:
        """`run` and `stood` are those of an ending; the body of every other notice says its own run."""
        thread, when = draft.thread, draft.at
        number = self._numbers.get(thread)
        if number is None:
            row = cursor.execute(SQL["numbers_given"], (thread,)).fetchone()
            number = row[0] if row else 0
        number += 1
        self._numbers[thread] = number
        self._given[thread] = when
        state = "muted" if draft.muted else "unread"
        kind, seq, body = 0, 0, ""  # which is NULL
        if draft.body is not None:
            stood = ""
            kind, run, seq, body = KINDS.index(draft.body.kind), *draft.body.ref[2:], seal(encode(draft.body))
        summed = of_notice(thread, number, kind, source, run, seq, when, stood)
        self._notices.append((thread, number, kind, source, run, seq, state, when, stood, body, summed))
        return number

    def write_rows(self, cursor: sqlite3.Cursor) -> None:
        if self._created or self._changed:
            self._write_tasks(cursor)
        for statement, rows in ((INSERT_NOTICE, self._notices), (INSERT_EVENT, self._events)):
            if rows:
                _write(cursor, statement, rows)
                rows.clear()

    def _write_tasks(self, cursor: sqlite3.Cursor) -> None:
        try:
            _write(cursor, INSERT_TASKS, self._created)
        except sqlite3.IntegrityError as problem:
            raise RowRefused from problem
        if _write(cursor, UPDATE_TASKS, self._changed.values()) < len(self._changed):
            raise RowRefused
        self._created.clear()
        self._changed.clear()

    def finish(self, cursor: sqlite3.Cursor) -> None:
        self.write_rows(cursor)
        if self._given:
            rows = [(thread, self._numbers[thread], when) for thread, when in self._given.items()]
            cursor.executemany(KEEP_NUMBERS, rows)
            self._given.clear()
        self._tallies.finish(cursor)
        self.batches.finish()
        if len(self._numbers) > MAX_NUMBERS:
            self._numbers.clear()
        if len(self._places) > MAX_PLACES:
            self._places.clear()

    def forget(self) -> None:
        """The group was rolled back: what was counted in it did not happen."""
        self._places.clear()
        self._created.clear()
        self._changed.clear()
        self._notices.clear()
        self._events.clear()
        self._last_task = self._last_event = None
        self._numbers.clear()
        self._given.clear()
        self._tallies.forget()
        self.batches.forget()


def _write(cursor: sqlite3.Cursor, statement: str, rows: Collection[tuple[object, ...]]) -> int:
    """`… VALUES (?, …) …` for many rows: SQLite opens a table and its indexes once a statement, which takes
    longer than a row. Returns how many were written."""
    written, left, rest = 0, len(rows), iter(rows)
    for size in ROWS:
        while left >= size:
            values = list(chain.from_iterable(islice(rest, size)))
            written += cursor.execute(_of_rows(statement, size), values).rowcount
            left -= size
    return written


@cache
def _of_rows(statement: str, size: int) -> str:
    if size == 1 and statement == UPDATE_TASKS:
        return UPDATE_TASK  # it takes the same values, and needs no table of them
    found = _ROW.fullmatch(statement)
    assert found is not None, statement
    head, row, tail = found.groups()
    return head + ", ".join([row] * size) + tail


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


def _new_row(place: int, task: Task, body: bytearray) -> tuple[object, ...]:
    # Plain text and numbers: Python's sqlite3 looks for an adapter of any other type each time it is bound,
    # even of None. So the statement makes NULL of an empty text. A new task has no duration.
    return (
        place, task.id, task.thread, str(task.status), task.version, task.run.number, task.batch,
        task.tool_call_id or "", 1 if task.hidden else 0, task.updated_at, body, task.agent_or_kind,
        task.title.casefold(), task.session or "", task.work.kind, task.parent or "",
    )  # fmt: skip


def _next_row(change: Change, body: bytearray) -> tuple[object, ...]:
    task = change.task
    hidden = 1 if task.hidden else 0
    return (
        str(task.status), task.version, task.run.number, hidden, task.updated_at, body,
        task.session or "", task.run.duration, 1 if task.follow_up else 0, task.id, change.replaces,
    )  # fmt: skip


def _in_the_way(cursor: sqlite3.Cursor, task: Task) -> Committed:
    if cursor.execute(SQL["task_by_id"], (task.id,)).fetchone():
        return Committed(CommitResult.SAME_ID, existing=task.id)
    (existing,) = cursor.execute(SQL["task_of_call"], (task.thread, task.tool_call_id)).fetchone()
    return Committed(CommitResult.SAME_CALL, existing=existing)
