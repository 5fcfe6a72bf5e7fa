"""An older copy in the place of a ledger that was closed: refused until somebody decides."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from meantime import Call, LedgerDamaged, Meantime
from meantime.app.ledger_backup import back_up
from meantime.app.ledger_restore import restore

from .damaged import Killed, found, work

pytestmark = pytest.mark.faults


async def fill(ledger: Path, id: str) -> None:
    async with Meantime.open(ledger) as meantime:
        await (await meantime.thread("a").start(Call(work, 1), id=id)).wait()


class Aged:
    def __init__(self, folder: Path) -> None:
        self.ledger, self.old, self.new = folder / "ledger.db", folder / "old.db", folder / "new.db"
        asyncio.run(fill(self.ledger, "a-1"))
        shutil.copyfile(self.ledger, self.old)
        asyncio.run(fill(self.ledger, "a-2"))
        shutil.copyfile(self.ledger, self.new)


@pytest.fixture
def aged(tmp_path: Path) -> Aged:
    return Aged(tmp_path)


@pytest.mark.parametrize("way", ["cp", "mv"])
def test_it_is_refused_and_left_where_it_is(aged: Aged, way: str) -> None:
    (shutil.copyfile if way == "cp" else shutil.copy2)(aged.old, aged.ledger.with_name("x"))
    if way == "cp":
        shutil.copyfile(aged.old, aged.ledger)
    else:
        os.replace(aged.ledger.with_name("x"), aged.ledger)
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match=r"older copy.*`meantime restore`.*salvage=True, or remove"):
            found(aged.ledger)
    assert aged.ledger.read_bytes() == aged.old.read_bytes()
    shutil.copyfile(aged.new, aged.ledger)
    assert found(aged.ledger) == {"a-1", "a-2"}


@pytest.mark.parametrize("way", ["salvage", "no lock"])
def test_it_can_be_accepted(aged: Aged, way: str) -> None:
    shutil.copyfile(aged.old, aged.ledger)
    if way == "no lock":
        Path(f"{aged.ledger}.lock").unlink()
    assert found(aged.ledger, salvage=way == "salvage") == {"a-1"}
    assert found(aged.ledger) == {"a-1"}


def test_a_backup_can_be_restored_in_its_place(aged: Aged, tmp_path_factory: pytest.TempPathFactory) -> None:
    backup = tmp_path_factory.mktemp("backup") / "meantime.tar"
    back_up(aged.ledger, backup)
    asyncio.run(fill(aged.ledger, "a-3"))
    aged.ledger.unlink()
    restore(backup, aged.ledger, is_home=False)
    assert found(aged.ledger) == {"a-1", "a-2"}


def test_a_ledger_that_another_program_has_written_is_not_older(aged: Aged) -> None:
    with closing(sqlite3.connect(aged.ledger)) as db:
        db.execute("CREATE TABLE more (x)")
        db.commit()
        db.execute("VACUUM")
    assert found(aged.ledger) == {"a-1", "a-2"}


def test_a_copy_of_everything_opens(aged: Aged, tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("elsewhere") / "home"
    shutil.copytree(aged.ledger.parent, home)
    assert found(home / "ledger.db") == {"a-1", "a-2"}


def test_a_wal_that_is_put_beside_a_closed_ledger_is_not_applied(aged: Aged) -> None:
    """SQLite would: its frames add up, and bring older pages over newer ones."""
    with closing(sqlite3.connect(aged.old)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("DELETE FROM tasks")
        db.commit()
        shutil.copyfile(f"{aged.old}-wal", f"{aged.ledger}-wal")
    with pytest.raises(LedgerDamaged, match="a WAL that is not its own"):
        found(aged.ledger)


def test_an_older_database_under_the_wal_of_a_killed_owner_is_set_aside(tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    home = tmp_path / "home"
    home.mkdir()
    asyncio.run(fill(home / "ledger.db", "b-1"))
    shutil.copyfile(home / "ledger.db", old)
    asyncio.run(fill(home / "ledger.db", "b-2"))
    killed = Killed(home)
    with killed.ledger.open("r+b") as file:
        file.truncate(0)
        file.write(old.read_bytes())
    with pytest.raises(LedgerDamaged, match=r"its database is older than its WAL.*set aside"):
        found(killed.ledger)
