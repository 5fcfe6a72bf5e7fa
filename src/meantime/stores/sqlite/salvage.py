"""A damaged ledger is set aside, never replaced by an empty one without a word."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from meantime.kernel.model import Task
from meantime.kernel.notice_sources import notice_id

from . import checkpoints, counters, salvage_report, salvaged_alarms
from .checksums import decode_task, of_notice
from .ledger_lock import make_private
from .salvaged_rows import Salvaged
from .sql import APPLICATION, migrate, queries

SQL = queries()


def is_foreign(ledger: Path, lock: Path) -> bool:
    """Somebody else's file: it holds something, was never opened by us, and does not carry our mark.
    A ledger that we did open, and cannot read any more, is damaged instead."""
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
    """The problem with the database, or the empty string."""
    try:
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if thorough:
            (verdict,) = db.execute("PRAGMA integrity_check(1)").fetchone()
            return "" if verdict == "ok" else str(verdict)
    except sqlite3.DatabaseError as problem:
        if is_damage(problem):
            return str(problem)
        raise
    return ""


def is_damage(problem: sqlite3.Error) -> bool:
    """A disk that is full, failing or locked for a while is not damage: the ledger itself is healthy."""
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def set_aside(ledger: Path) -> Path:
    """Moves the database and its side files into a folder of their own."""
    folder = _new_folder(ledger)
    for suffix in ("", "-wal", "-shm", ".mark"):
        file = Path(f"{ledger}{suffix}")
        if file.exists():
            file.rename(folder / file.name)
    return folder


def set_wal_aside(ledger: Path) -> None:
    """A WAL that took the place of the ledger's own. Everything is in the database by now."""
    wal = Path(f"{ledger}-wal")
    if wal.exists():
        wal.rename(_new_folder(ledger) / wal.name)


def _new_folder(ledger: Path) -> Path:
    folder = Path(f"{ledger}.damaged-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}")
    folder.mkdir(mode=0o700)
    return folder


def rescue(db: sqlite3.Connection, ledger: Path) -> None:
    """Writes a copy of a ledger that was removed while we have it open, to where the next owner looks."""
    copy = _new_folder(ledger) / ledger.name
    make_private(copy)
    db.execute("VACUUM INTO ?", (str(copy),))


def last_set_aside(ledger: Path) -> Path | None:
    """The newest folder with a damaged ledger, where nothing has taken its place yet."""
    if ledger.exists() and ledger.stat().st_size:
        return None
    folders = sorted(ledger.parent.glob(f"{ledger.name}.damaged-*"))
    return folders[-1] if folders else None


def readable(damaged: Path) -> dict[str, int]:
    return {table: len(rows) for table, rows in Salvaged(damaged).rows.items()}


def rebuild(ledger: Path, folder: Path, number: int) -> dict[str, int]:
    """A new ledger from what can be read; the number of checkpoints makes it the newest. It takes its place
    whole or not at all: a rebuild that is killed half-way is done again."""
    new = Path(f"{ledger}.salvaging")
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{new}{suffix}").unlink(missing_ok=True)
    make_private(new)
    found = Salvaged(folder / ledger.name)
    is_older = (checkpoints.number_in(folder / ledger.name) or 0) < number - 1
    found.is_whole = found.is_whole and not is_older
    with closing(sqlite3.connect(new, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=FULL")
        migrate(db)
        checkpoints.set_to(db, number)
        saved = _copy(found, db)
        lines = salvage_report.lines(db, found)
    salvage_report.write(folder, lines)
    os.replace(new, ledger)
    folder.rename(str(folder).replace(".damaged-", ".salvaged-"))
    return saved


def _copy(found: Salvaged, into: sqlite3.Connection) -> dict[str, int]:
    saved: dict[str, int] = {}
    into.execute("BEGIN IMMEDIATE")
    for table, rows in found.rows.items():
        saved[table] = 0
        for row in rows.values():
            names, marks = ",".join(row), ",".join("?" * len(row))
            try:
                done = into.execute(
                    f"INSERT OR IGNORE INTO {table} ({names}) VALUES ({marks})", list(row.values())
                )
                saved[table] += done.rowcount
            except sqlite3.Error:  # a row that breaks a constraint is damage, too
                continue
    _mend(into)
    into.execute("COMMIT")
    return saved


def _mend(db: sqlite3.Connection) -> None:
    """References between rows must hold again: no notice without its ending, no ending without its notice, no
    completion number given twice. A ledger from before we looked by columns gets them here.
    """
    for name in ("fill_columns", "drop_notices_of_nothing", "drop_notices_of_no_run", "raise_numbers"):
        db.execute(SQL[name])
    for seq, thread, run, at, body in db.execute(SQL["ended_without_notice"]).fetchall():
        task = decode_task(body)
        _add_notice(db, task, seq, thread, run, task.run.ended_at or at)
    salvaged_alarms.mend(db, _lost_number)
    counters.recount(db)


def _add_notice(db: sqlite3.Connection, task: Task, seq: int, thread: str, run: int, at: float) -> None:
    """Whether it was told is lost with it; but a transcript of ours that has it says so."""
    was_told = db.execute(SQL["has_entry"], (thread, notice_id(task.id, run))).fetchone() is not None
    state = "told" if was_told else "unread" if task.notify else "muted"
    number = _lost_number(db, thread, at)
    summed = of_notice(thread, number, 0, seq, run, 0, at)
    told_at = at if was_told else None
    db.execute(SQL["insert_lost_notice"], (thread, number, seq, run, state, at, summed, told_at))


def _lost_number(db: sqlite3.Connection, thread: str, at: float) -> int:
    """Its place in the order of endings, where that is free; otherwise the end."""
    (before,) = db.execute(SQL["number_before"], (thread, at)).fetchone()
    if not db.execute(SQL["has_number"], (thread, before + 1)).fetchone():
        db.execute(SQL["reserve_number"], (thread, before + 1, at))
        return before + 1
    (number,) = db.execute(SQL["next_number"], (thread, at)).fetchone()
    return number
