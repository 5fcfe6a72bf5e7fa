"""Reads the named statements and the numbered migrations that lie beside this file."""

from __future__ import annotations

import re
import sqlite3
from functools import cache
from pathlib import Path

from meantime.kernel.errors import LedgerTooNew

from . import looking

HERE = Path(__file__).parent
APPLICATION = 0x4D54494D  # "MTIM", in the header of every ledger of ours


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
    looking.teach(db)
    for number in range(version + 1, newest + 1):
        db.execute("BEGIN IMMEDIATE")
        try:
            for statement in _statements(migrations()[number]):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION}")
            db.execute(f"PRAGMA user_version = {number}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:  # a full disk rolls back by itself
                db.execute("ROLLBACK")
            raise


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
