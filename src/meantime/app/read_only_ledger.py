"""The ledger, read only, beside whoever owns it: for the doctor and the audit."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from meantime.kernel.errors import LedgerError, LedgerTooNew
from meantime.stores.sqlite.sql import APPLICATION, lenient_text, migrations


class LedgerTooOld(LedgerError):
    """Sound, and of an earlier version: the next daemon brings it up to date."""

    code = "ledger_too_old"


@contextmanager
def read_only(ledger: Path, *, owned: bool) -> Generator[sqlite3.Connection]:
    """One view of it, as it is now. Nothing is written, not even by SQLite itself."""
    if not ledger.exists():
        raise LedgerError(f"There is no {ledger}.", hint="It is made with the first daemon: `meantime up`.")
    # A file that nobody has open and that was closed well is read as it lies; else the WAL belongs to it.
    alone = not owned and not os.path.exists(f"{ledger}-wal")
    how = "immutable=1" if alone else "mode=ro"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(ledger))}?{how}", uri=True, timeout=5)) as db:
            db.text_factory = lenient_text
            db.execute("BEGIN")
            yield db
    except (sqlite3.Error, UnicodeError) as problem:  # even what SQLite says may not be UTF-8
        raise LedgerError(f"{ledger} cannot be read: {problem}.", hint="See `meantime doctor`.") from problem


def check_schema(db: sqlite3.Connection, ledger: Path) -> None:
    """Only a ledger of ours, of a version that we know."""
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise LedgerError(f"{ledger} is not a ledger of Meantime.", hint="Name another file.")
    if version < max(migrations()):
        raise LedgerTooOld(
            f"{ledger} has schema {version}; this Meantime reads {max(migrations())}.",
            hint="Bring it up to date: meantime down --keep && meantime up",
        )
    if version > max(migrations()):
        raise LedgerTooNew(
            f"{ledger} has schema {version}; this Meantime reads {max(migrations())}.",
            hint="Use the version of Meantime that serves it, or a newer one.",
        )


def size(ledger: Path) -> str:
    """The size of the file, and of the WAL beside it."""
    beside = (f"{ledger}{ending}" for ending in ("", "-wal"))
    total = sum(os.stat(path).st_size for path in beside if os.path.exists(path))
    return f"{total / 1e6:.1f} MB" if total >= 100_000 else f"{total / 1e3:.0f} kB"
