"""The connection that writes, and how SQLite keeps its files."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from .sql import lenient_text

WAL_KEPT = 4 << 20  # bytes that the WAL keeps when it begins anew
BUSY = 500  # milliseconds that a transaction waits for another program, and a close for readers


def connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=BUSY / 1000
    )
    db.text_factory = lenient_text
    (mode,) = db.execute("PRAGMA journal_mode=WAL").fetchone()
    if mode != "wal":  # without it there is no mark, and readers wait for commits
        db.close()
        raise sqlite3.OperationalError(f"its journal mode is {mode}, not wal")
    db.execute("PRAGMA synchronous=FULL")
    db.execute("PRAGMA wal_autocheckpoint=0")
    db.execute(f"PRAGMA journal_size_limit={WAL_KEPT}")
    return db
