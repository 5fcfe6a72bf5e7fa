"""The transaction that changes a task: compare and swap, completion number, notice, event."""

from __future__ import annotations

import sqlite3

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
KEEP_NUMBERS = SQL["keep_numbers"]
INSERT_NOTICE = SQL["insert_notice"]
KINDS = tuple(SourceKind)  # a notice's row has the place of its kind among these
MAX_NUMBERS = 10_000  # threads whose number is remembered; others are read again
_CONFLICT = Committed(CommitResult.CONFLICT)
_LEASED = Committed(CommitResult.LEASED)


class Changes:
    """Applies changes for the writer. Completion numbers are counted here, since there is one writer,
    and kept once a group: a row per ending would cost more than the ending itself."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._given: dict[str, float] = {}  # threads with new numbers in this group, and when
        self._tallies = counters.Tallies()

    def apply(self, cursor: sqlite3.Cursor, change: Change, body: bytes, archived: bytes | None) -> Committed:
        """The first statement decides: if it changes nothing, nothing else is written."""
        task = change.task
        if change.notices and change.notices[0].joins and (refusal := _join(cursor, change)) is not None:
            return refusal
        if change.replaces == 0:
            cursor.execute(INSERT_TASK, _new_row(task, body))
            if not cursor.rowcount:
                return _in_the_way(cursor, task)
            at = cursor.lastrowid
        else:
            was_hidden = counters.was_hidden(cursor, change)
            row = cursor.execute(UPDATE_TASK, _next_row(change, body)).fetchone()
            if row is None:
                return _CONFLICT
            (at,) = row
            self._tallies.note(change, was_hidden)
        if archived is not None and change.archives is not None:
            cursor.execute(SQL["insert_run"], (task.id, change.archives.run.number, archived))
        number = 0
        for draft in change.notices:
            if not draft.joins:
                number = self.add_notice(cursor, at, draft, task.run.number)
        seq = 0
        event = change.event
        if event is not None:
            said = (event.kind, task.id, task.thread, event.run, event.status, event.at)
            cursor.execute(INSERT_EVENT, (*said, of_event(*said)))
            seq = cursor.lastrowid or 0
        return Committed(CommitResult.DONE, seq, number)

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
        cursor.execute(INSERT_NOTICE, (thread, number, kind, source, run, seq, state, when, body, summed))
        return number

    def finish(self, cursor: sqlite3.Cursor) -> None:
        if self._given:
            rows = [(thread, self._numbers[thread], when) for thread, when in self._given.items()]
            cursor.executemany(KEEP_NUMBERS, rows)
            self._given.clear()
        self._tallies.finish(cursor)
        if len(self._numbers) > MAX_NUMBERS:
            self._numbers.clear()

    def forget(self) -> None:
        """The group was rolled back: what was counted in it did not happen."""
        self._numbers.clear()
        self._given.clear()
        self._tallies.forget()


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
    return (
        task.id, task.thread, task.status, task.version, task.run.number, task.batch or None,
        task.tool_call_id, 1 if task.hidden else 0, task.updated_at, body, *search_columns.columns(task),
    )  # fmt: skip


def _next_row(change: Change, body: bytes) -> tuple[object, ...]:
    task = change.task
    hidden = 1 if task.hidden else 0
    return (
        task.status, task.version, task.run.number, hidden, task.updated_at, body,
        task.session, task.run.duration, 1 if task.follow_up else 0, task.id, change.replaces,
    )  # fmt: skip


def _in_the_way(cursor: sqlite3.Cursor, task: Task) -> Committed:
    if cursor.execute(SQL["task_by_id"], (task.id,)).fetchone():
        return Committed(CommitResult.SAME_ID, existing=task.id)
    (existing,) = cursor.execute(SQL["task_of_call"], (task.thread, task.tool_call_id)).fetchone()
    return Committed(CommitResult.SAME_CALL, existing=existing)
