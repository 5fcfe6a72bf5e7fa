"""Reads the named statements and the numbered migrations beside this file."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from meantime.kernel.errors import LedgerTooNew

from . import search_columns

HERE = Path(__file__).parent
APPLICATION = 0x4D54494D  # "MTIM", in the header of every ledger of ours


def lenient_text(raw: bytes) -> str:
    """For connections: text that is not UTF-8 must spoil its own row, and not the whole question."""
    return raw.decode("utf-8", "surrogateescape")


@cache
def queries() -> dict[str, str]:
    """The statements of queries.sql by name."""
    text = (HERE / "queries.sql").read_text()
    blocks = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    return {name: body.strip().rstrip(";") for name, body in zip(blocks[::2], blocks[1::2], strict=True)}


@cache
def migrations() -> dict[int, str]:
    files = sorted((HERE / "migrations").glob("*.sql"))
    return {int(file.name.split("_")[0]): file.read_text() for file in files}


def migrate(db: sqlite3.Connection) -> None:
    """Brings the schema up to date, each step in a transaction of its own."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    newest = max(migrations())
    if version > newest:
        raise LedgerTooNew(
            f"The ledger has schema {version}; this Meantime knows up to {newest}.",
            hint="Upgrade Meantime, or open another ledger. Nothing was changed.",
        )
    search_columns.teach(db)
    for number in range(version + 1, newest + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            for statement in _statements(migrations()[number]):
                _migrate_by(db, statement)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # a full disk rolls back by itself
                db.execute("ROLLBACK")
            raise


def _migrate_by(db: sqlite3.Connection, statement: str) -> None:
    try:
        db.execute(statement)
    except sqlite3.OperationalError as problem:
        # In defensive mode, which the SQLite of macOS begins with, nobody writes the text of the schema. Only
        # forms of the same constraints are written in this way: the older ones stay, and cost more.
        if not statement.startswith("UPDATE sqlite_schema ") or "may not be modified" not in str(problem):
            raise


def schema_lacks(db: sqlite3.Connection) -> str:
    """A flipped letter in the text of the schema makes another column or table of it. Others may be there."""
    return ", ".join(sorted(" ".join(part) for part in _expected_schema() - _schema_of(db))[:5])


@cache
def _expected_schema() -> frozenset[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db)
        return _schema_of(db)


def _schema_of(db: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    rows = db.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
    tables = [name for type, name, _, _ in rows if type == "table"]
    columns = {
        ("column", table, *map(str, column[1:]))
        for table in tables
        for column in db.execute("SELECT * FROM pragma_table_info(?)", (table,))
    }
    others = {(str(type), str(name), str(of), str(sql)) for type, name, of, sql in rows if type != "table"}
    return frozenset(columns | others)


def _statements(script: str) -> list[str]:
    """executescript would commit our transaction, so the script is split here."""
    found: list[str] = []
    pending = ""
    for line in script.splitlines(keepends=True):
        if not pending and (line.startswith("--") or not line.strip()):
            continue
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found
