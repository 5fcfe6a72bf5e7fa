"""The number of checkpoints tells an older copy of the database from the newest one.

Before the WAL is brought into the database, a counter in it is raised; then the lock repeats the number.
So a database whose own number is lower than that of the lock is older than what was there: somebody has put
a copy in its place. A higher number is not damage: the lock may lag behind, and must never run ahead.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from .sql import queries

SQL = queries()


def raised(cursor: sqlite3.Cursor) -> int:
    row = cursor.execute(SQL["raise_checkpoints"]).fetchone()
    if row is None:
        raise sqlite3.DatabaseError("the number of checkpoints is gone")
    return row[0]


def number_now(db: sqlite3.Connection) -> int:
    """With what is in the WAL."""
    (number,) = db.execute(SQL["checkpoints"]).fetchone() or (0,)
    return number if isinstance(number, int) else 0


def number_in(ledger: Path) -> int | None:
    """The number in the database file alone, whatever is in its WAL. 0 where an earlier version wrote it,
    None where it cannot be read.
    """
    try:
        with closing(sqlite3.connect(f"{ledger.absolute().as_uri()}?immutable=1", uri=True)) as db:
            if not db.execute(SQL["has_checkpoints"]).fetchone():
                return 0
            (number,) = db.execute(SQL["checkpoints"]).fetchone() or (0,)
            return number if isinstance(number, int) else None
    except (sqlite3.Error, OSError, UnicodeError):  # even what SQLite says of it may not be UTF-8
        return None


def set_to(db: sqlite3.Connection, number: int) -> None:
    """For a ledger that takes the place of another one."""
    db.execute(SQL["set_checkpoints"], (number,))
