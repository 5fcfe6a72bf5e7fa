"""The transaction that deletes ended tasks, and the files that go with them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from meantime.kernel.change import PURGED
from meantime.kernel.model import Task

from .commit import Changes
from .sql import queries

SQL = queries()


def spilled(tasks: Iterable[Task]) -> list[str]:
    return [task.outcome.spill.path for task in tasks if task.outcome and task.outcome.spill]


def delete_tasks(
    cursor: sqlite3.Cursor, changes: Changes, statement: str, ids: Sequence[str], now: float | None
) -> list[str]:
    """The statement looks again, in this transaction: what was resumed meanwhile stays."""
    deleted: list[str] = []
    for id in ids:
        row = cursor.execute(SQL[statement], (id,)).fetchone()
        if row:
            seq, thread, run, status, batch = row
            changes.batches.forget_batch(thread, batch)
            deleted.append(id)
            cursor.execute(SQL["delete_runs"], (id,))
            cursor.execute(SQL["delete_notices"], (seq,))
            if now is not None:
                changes.add_event(cursor, PURGED, id, thread, run, status, now)
    return deleted
