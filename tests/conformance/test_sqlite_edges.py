"""The SQLite store where something is wrong before anything is read: options, files, migrations."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from meantime import InvalidInput, LedgerError, Meantime
from meantime.stores.sqlite import salvage, sql
from meantime.stores.sqlite.spilled_files import Spills

pytestmark = pytest.mark.anyio


async def test_an_unknown_durability_is_refused_and_no_ledger_is_made(tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"durability='later' is unknown. Use 'full' or 'fast'"):
        async with Meantime.open(tmp_path / "work.db", durability="later"):
            pass
    assert list(tmp_path.glob("*.db*")) == []


@pytest.mark.behaviour("P12")
async def test_only_payloads_of_this_ledger_are_read(tmp_path: Path):
    (tmp_path / "other.txt").write_text("secret")
    spills = Spills(tmp_path / "spills")
    for path in ("other.txt", "spills/../other.txt"):
        with pytest.raises(LedgerError, match="is not a spilled payload of this ledger"):
            spills.read(str(tmp_path / path))


@pytest.mark.behaviour("H1", "P11")
async def test_a_migration_that_fails_leaves_the_ledger_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = sql.migrations()
    broken = {number: text for number, text in whole.items() if number < max(whole)}
    broken[max(whole)] = "CREATE TABLE half (a);\nINSERT INTO nowhere VALUES (1);\n"
    db = sqlite3.connect(tmp_path / "work.db", isolation_level=None)
    monkeypatch.setattr(sql, "migrations", lambda: broken)
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        sql.migrate(db)
    assert db.execute("PRAGMA user_version").fetchone() == (max(whole) - 1,)
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half'").fetchone() == (0,)
    monkeypatch.undo()
    sql.migrate(db)
    assert db.execute("PRAGMA user_version").fetchone() == (max(whole),)
    db.close()


@pytest.mark.behaviour("P11")
async def test_a_file_that_is_not_a_database_is_damage_and_a_locked_one_is_not(tmp_path: Path):
    (tmp_path / "text.db").write_bytes(b"not a database, but long enough to be read as a page" * 100)
    db = sqlite3.connect(tmp_path / "text.db")
    assert "not a database" in salvage.check(db, thorough=False)
    db.close()
    owner = sqlite3.connect(tmp_path / "work.db", isolation_level=None)
    owner.execute("CREATE TABLE a (b)")
    assert salvage.check(owner, thorough=False) == salvage.check(owner, thorough=True) == ""
    owner.execute("BEGIN EXCLUSIVE")
    other = sqlite3.connect(tmp_path / "work.db", timeout=0)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        salvage.check(other, thorough=False)
    other.close()
    owner.close()
