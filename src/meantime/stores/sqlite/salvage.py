"""A damaged ledger is set aside, never replaced by an empty one without a word."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from meantime.kernel.errors import LedgerDamaged

from .files import make_private
from .sql import APPLICATION, migrate

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


def rebuild(ledger: Path, folder: Path) -> dict[str, int]:
    """A new ledger from what can be read. It takes its place whole or not at all: a rebuild that is
    killed half-way is done again."""
    new = Path(f"{ledger}.salvaging")
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{new}{suffix}").unlink(missing_ok=True)
    make_private(new)
    with closing(sqlite3.connect(new, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=FULL")
        migrate(db)
        saved = _copy_readable(folder / ledger.name, db)
    os.replace(new, ledger)
    folder.rename(str(folder).replace(".damaged-", ".salvaged-"))
    return saved


def _copy_readable(damaged: Path, into: sqlite3.Connection) -> dict[str, int]:
    """Every row that can still be read, from both ends of each table."""
    saved: dict[str, int] = {}
    into.execute("BEGIN IMMEDIATE")
    for table, key in _TABLES.items():
        saved[table] = 0
        for row in _rows(damaged, table, key):
            names, marks = ",".join(name for name, _ in row), ",".join("?" * len(row))
            try:
                done = into.execute(
                    f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", [value for _, value in row]
                )
                saved[table] += done.rowcount
            except sqlite3.DatabaseError:  # a row that breaks a constraint is damage, too
                continue
    _mend(into)
    into.execute("COMMIT")
    return saved


def _mend(db: sqlite3.Connection) -> None:
    """What one row says of another must hold again: no notice without its task and run, and no
    completion number given twice. A ledger from before we looked by columns gets them here."""
    db.execute(
        "UPDATE tasks SET (agent, words, session, duration) ="
        " (SELECT looked(body, 0), looked(body, 1), looked(body, 2), looked(body, 3)) WHERE agent IS NULL"
    )
    db.execute("DELETE FROM notices WHERE task NOT IN (SELECT seq FROM tasks)")
    db.execute(
        "DELETE FROM notices WHERE NOT EXISTS"
        " (SELECT 1 FROM tasks AS t WHERE t.seq = task AND t.run = notices.run) AND NOT EXISTS"
        " (SELECT 1 FROM tasks AS t JOIN runs AS r ON r.task_id = t.id"
        "  WHERE t.seq = task AND r.run = notices.run)"
    )
    db.execute(
        "INSERT INTO threads (id, ended) SELECT thread, max(number) FROM notices WHERE 1 GROUP BY thread"
        " ON CONFLICT (id) DO UPDATE SET ended = max(ended, excluded.ended)"
    )


def _rows(damaged: Path, table: str, key: str) -> list[tuple[tuple[str, object], ...]]:
    """With the names of their columns: the damaged ledger may have an older schema than ours."""
    found: dict[tuple[tuple[str, object], ...], None] = {}
    for order in ("ASC", "DESC"):
        try:
            with closing(sqlite3.connect(f"{damaged.absolute().as_uri()}?mode=ro", uri=True)) as db:
                rows = db.execute(f"SELECT * FROM {table} ORDER BY {key} {order}")
                names = [column[0] for column in rows.description]
                for row in rows:
                    found[tuple(zip(names, row, strict=True))] = None
        except sqlite3.DatabaseError:
            continue
    return list(found)
