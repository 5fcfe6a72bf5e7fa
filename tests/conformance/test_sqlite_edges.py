"""The SQLite store at its edges: options, files, migrations, its lock, its limits and its close."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from pathlib import Path

import pytest

from meantime import Call, InvalidInput, LedgerBusy, LedgerError, Meantime
from meantime.stores.sqlite import commit, salvage, sql
from meantime.stores.sqlite.ledger_lock import Lock, make_private
from meantime.stores.sqlite.spilled_files import Spills
from runtimes import runtime_of

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


# -- one owner


async def test_an_owner_that_left_no_name_is_another_process(tmp_path: Path):
    path = tmp_path / "work.db"
    async with Meantime.open(path):
        Path(f"{path}.lock").write_bytes(b"")  # as a full disk leaves it
        with pytest.raises(LedgerBusy, match="another process"):
            async with Meantime.open(path):
                pass


def test_a_forked_child_does_not_keep_the_lock_of_its_parent(tmp_path: Path):
    """Otherwise a worker of multiprocessing that outlives the owner would lock everybody out."""
    path = tmp_path / "work.db"
    lock = Lock(path)
    lock.take()
    child = os.fork()
    if not child:
        os._exit(0 if lock._fd == -1 else 1)
    assert os.waitpid(child, 0)[1] == 0
    with pytest.raises(LedgerBusy):
        Lock(path).take()
    lock.give_back(clean=True)
    lock.give_back(clean=True)  # once more is harmless
    again = Lock(path)
    again.take()
    again.drop()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to somebody else")
async def test_the_mode_of_a_ledger_that_belongs_to_somebody_else_stays(tmp_path: Path):
    path = tmp_path / "work.db"
    path.touch(mode=0o660)
    path.chmod(0o660)
    os.chown(path, 1, -1)
    make_private(path)
    assert path.stat().st_mode & 0o777 == 0o660
    os.chown(path, 0, -1)
    make_private(path)
    assert path.stat().st_mode & 0o777 == 0o600


# -- limits


async def test_numbers_of_threads_that_are_not_remembered_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(commit, "MAX_NUMBERS", 2)
    async with Meantime.open(tmp_path / "work.db") as mt:
        for _ in range(2):
            for name in ("a", "b", "c", "d"):
                await (await mt.thread(name).start(Call(int, "1"))).wait()
        for name in ("a", "b", "c", "d"):
            async with mt.thread(name).turn() as turn:
                assert [notice.number for notice in turn.notices] == [1, 2]
                await turn.ack()


async def test_what_is_owed_is_said_of_so_many_threads_as_were_asked_for(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        for name in ("a", "b", "c"):
            await (await mt.thread(name).start(Call(int, "1"))).wait()
        assert [(one.thread, one.unread) for one in await runtime_of(mt).store.owed(None, 2)] == [
            ("a", 1),
            ("b", 1),
        ]


# -- closing


async def test_a_reader_that_holds_the_wal_at_the_close_costs_nothing(tmp_path: Path):
    """The checkpoint cannot empty the WAL then: the next owner finds everything in it."""
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        await (await mt.thread("a").start(Call(int, "1"), id="t_kept")).wait()
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tasks").fetchone()
        await (await mt.thread("a").start(Call(int, "2"), id="t_too")).wait()
    assert Path(f"{path}-wal").stat().st_size > 0
    reader.close()
    async with Meantime.open(path) as mt:
        assert {task.id for task in await mt.list("all")} == {"t_kept", "t_too"}


async def test_a_task_that_never_ran_is_deleted_with_what_was_counted_of_it(tmp_path: Path):
    async with Meantime.open(tmp_path / "work.db") as mt:
        await mt.set_limits(per_thread=1)
        running = await mt.thread("a").start(Call(asyncio.Event().wait))
        queued = await mt.thread("a").start(Call(int, "1"))
        await queued.cancel(wait=True)
        assert (await mt.purge(queued.id)) == 1
        await running.cancel(wait=True)
        counts = await runtime_of(mt).store.ended_counts()
        assert dict(counts) == {"cancelled": 1}
