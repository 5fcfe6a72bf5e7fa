"""The transaction that changes a task: compare and swap, completion number, notice, event."""

from __future__ import annotations

import sqlite3

import msgspec

from meantime.kernel.change import Change
from meantime.kernel.model import Task
from meantime.ports.store import CommitResult, Committed

from .sql import queries

SQL = queries()
encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(Task)
decode = _decoder.decode

INSERT_TASK = SQL["insert_task"]
UPDATE_TASK = SQL["update_task"]
INSERT_EVENT = SQL["insert_event"]
NEXT_NUMBER = SQL["next_number"]
INSERT_NOTICE = SQL["insert_notice"]
_CONFLICT = Committed(CommitResult.CONFLICT)


def apply(cursor: sqlite3.Cursor, change: Change, body: bytes, archived: bytes | None) -> Committed:
    """The first statement decides: if it changes nothing, nothing else is written."""
    task = change.task
    if change.replaces == 0:
        cursor.execute(INSERT_TASK, _new_row(task, body))
        if not cursor.rowcount:
            return _in_the_way(cursor, task)
    else:
        hidden = 1 if task.hidden else 0
        row = (
            task.status,
            task.version,
            task.run.number,
            hidden,
            task.updated_at,
            body,
            task.id,
            change.replaces,
        )
        cursor.execute(UPDATE_TASK, row)
        if not cursor.rowcount:
            return _CONFLICT
    if archived is not None and change.archives is not None:
        cursor.execute(SQL["insert_run"], (task.id, change.archives.run.number, archived))
    number = _end(cursor, task) if change.ends else 0
    seq = 0
    event = change.event
    if event is not None:
        cursor.execute(INSERT_EVENT, (event.kind, task.id, task.thread, event.run, event.status, event.at))
        seq = cursor.lastrowid or 0
    return Committed(CommitResult.DONE, seq, number)


def _new_row(task: Task, body: bytes) -> tuple[object, ...]:
    return (
        task.id, task.thread, task.status, task.version, task.run.number, task.batch or None,
        task.tool_call_id, 1 if task.hidden else 0, task.updated_at, body,
    )  # fmt: skip


def _end(cursor: sqlite3.Cursor, task: Task) -> int:
    at = task.updated_at
    (number,) = cursor.execute(NEXT_NUMBER, (task.thread, at)).fetchone()
    state = "unread" if task.notify else "muted"
    cursor.execute(INSERT_NOTICE, (task.thread, number, task.id, task.run.number, state, at))
    return number


def _in_the_way(cursor: sqlite3.Cursor, task: Task) -> Committed:
    if cursor.execute(SQL["task_by_id"], (task.id,)).fetchone():
        return Committed(CommitResult.SAME_ID, existing=task.id)
    (existing,) = cursor.execute(SQL["task_of_call"], (task.thread, task.tool_call_id)).fetchone()
    return Committed(CommitResult.SAME_CALL, existing=existing)
