"""A damaged ledger is set aside, never replaced by an empty one without a word."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from meantime.kernel.errors import LedgerDamaged

from .sql import APPLICATION

_TABLES = {
    "tasks": "seq",
    "runs": "task_id",
    "threads": "id",
    "notices": "thread",
    "transcripts": "thread",
    "events": "seq",
}


def is_foreign(ledger: Path, lock: Path) -> bool:
    """Somebody else's file: it holds something, was never opened by us, and does not carry our mark.
    What we did open, and cannot read any more, is damage instead."""
    if not ledger.exists() or not ledger.stat().st_size or lock.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{ledger.as_uri()}?mode=ro", uri=True)) as db:
            (mark,) = db.execute("PRAGMA application_id").fetchone()
            return mark != APPLICATION
    except sqlite3.Error:
        return True


class Damaged(Exception):
    """The database is not what SQLite wrote: its text says what is wrong."""


def check(db: sqlite3.Connection, *, thorough: bool) -> str:
    """What is wrong with the database, or the empty string."""
    try:
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if thorough:
            (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
            return "" if verdict == "ok" else str(verdict)
    except sqlite3.DatabaseError as problem:
        if is_damage(problem):
            return str(problem)
        raise
    return ""


def is_damage(problem: sqlite3.Error) -> bool:
    """A disk that is full, failing or locked for a while is no damage: the ledger itself is healthy."""
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def set_aside(ledger: Path) -> Path:
    """Moves the database and its side files into a folder of their own."""
    folder = Path(f"{ledger}.damaged-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}")
    folder.mkdir(mode=0o700)
    for suffix in ("", "-wal", "-shm"):
        file = Path(f"{ledger}{suffix}")
        if file.exists():
            file.rename(folder / file.name)
    return folder


def last_set_aside(ledger: Path) -> Path | None:
    """The newest folder with a damaged ledger, where nothing has taken its place yet."""
    if ledger.exists() and ledger.stat().st_size:
        return None
    folders = sorted(ledger.parent.glob(f"{ledger.name}.damaged-*"))
    return folders[-1] if folders else None


def report(ledger: Path, folder: Path, problem: str) -> LedgerDamaged:
    rows = readable(folder / ledger.name)
    return LedgerDamaged(
        f"The ledger {ledger} is damaged ({problem or 'set aside earlier'}). "
        f"It was set aside, whole, in {folder}; "
        f"{rows.get('tasks', 0)} tasks and {rows.get('notices', 0)} notices in it can be read.",
        hint="Open it with salvage=True to go on with those, or put a backup in its place.",
    )


def readable(damaged: Path) -> dict[str, int]:
    return {table: len(_rows(damaged, table, key)) for table, key in _TABLES.items()}


def copy_readable(damaged: Path, into: sqlite3.Connection) -> dict[str, int]:
    """Copies every row that can still be read, from both ends of each table."""
    saved: dict[str, int] = {}
    into.execute("BEGIN IMMEDIATE")
    for table, key in _TABLES.items():
        rows = _rows(damaged, table, key)
        saved[table] = 0
        for row in rows:
            marks = ",".join("?" * len(row))
            try:
                done = into.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)
                saved[table] += done.rowcount
            except sqlite3.DatabaseError:  # a row that breaks a constraint is damage, too
                continue
    into.execute("DELETE FROM notices WHERE task NOT IN (SELECT seq FROM tasks)")
    into.execute("COMMIT")
    return saved


def _rows(damaged: Path, table: str, key: str) -> list[tuple[object, ...]]:
    found: dict[tuple[object, ...], None] = {}
    for order in ("ASC", "DESC"):
        try:
            with closing(sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=ro", uri=True)) as db:
                for row in db.execute(f"SELECT * FROM {table} ORDER BY {key} {order}"):
                    found[tuple(row)] = None
        except sqlite3.DatabaseError:
            continue
    return list(found)
