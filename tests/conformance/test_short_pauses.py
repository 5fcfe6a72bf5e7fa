"""Nobody waits long behind the upkeep of a ledger: it deletes in steps, and waits for no reader."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, Meantime, Settings, current
from meantime.kernel.event_notices import NoticeRate
from meantime.kernel.limits import Retention
from meantime.stores.sqlite import checkpoints, connection, inbox_transactions, store, wal_mark, writer
from runtimes import runtime_of

pytestmark = pytest.mark.anyio
STEP = 4


def writer_of(mt: Meantime) -> writer.Writer:
    ledger = runtime_of(mt).store
    assert isinstance(ledger, store.SqliteStore)
    return ledger._writer


async def until_all_is_in_the_database(mt: Meantime) -> None:
    """A checkpoint comes after its commit was acknowledged. The ledger's own reader cuts it short if the
    machine stops that in the middle of a query: then the next one would only come after a megabyte."""
    ledger = writer_of(mt)

    async def nothing_waits() -> bool:
        if (ledger._mark.used_bytes() or (0, 1))[1] == 0:
            return True
        ledger._again_over = 0
        await ledger.submit(lambda cursor: None, durable=False)
        return False

    await until_async(nothing_waits, "all of the WAL is in the database", there=ledger._mark.used_bytes)


def database_of(mt: Meantime) -> sqlite3.Connection:
    return writer_of(mt)._db


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Each statement of the upkeep, with the number of rows that it has changed in one transaction."""
    made: list[tuple[str, int]] = []
    really = inbox_transactions.changed

    def changed(cursor: sqlite3.Cursor, name: str, *args: object) -> int:
        made.append((name, really(cursor, name, *args)))
        return made[-1][1]

    monkeypatch.setattr(inbox_transactions, "changed", changed)
    monkeypatch.setattr(store, "_ROWS_AT_ONCE", STEP)
    return made


async def test_the_journal_is_trimmed_in_steps(tmp_path: Path, steps: list[tuple[str, int]]):
    async with Meantime.open(tmp_path / "work.db") as mt:
        for _ in range(10):
            await (await mt.thread("a").start(Call(int, "1"))).wait()
        ledger = runtime_of(mt).store
        last = await ledger.last_event()
        await ledger.forget(Retention(journal_events=3), 0.0)
        assert [event.seq for event in await ledger.events(0, 100)] == [last - 2, last - 1, last]
    trimmed = [count for name, count in steps if name == "trim_events"]
    assert sum(trimmed) == last - 3
    assert max(trimmed) == STEP


async def test_old_tasks_are_deleted_in_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    deleted: list[list[str]] = []
    really = store.delete_tasks

    def delete_tasks(cursor: sqlite3.Cursor, *args: Any) -> list[str]:
        deleted.append(really(cursor, *args))
        return deleted[-1]

    monkeypatch.setattr(store, "delete_tasks", delete_tasks)
    monkeypatch.setattr(store, "_TASKS_AT_ONCE", STEP)
    async with Meantime.open(tmp_path / "work.db") as mt:
        for _ in range(10):
            await (await mt.thread("a").start(Call(int, "1"), notify=False)).wait()
        assert await runtime_of(mt).store.forget(Retention(history_tasks=1), 0.0) == 9
        assert len(await mt.list("all")) == 1
    assert [len(ids) for ids in deleted] == [STEP, STEP, 1]


async def test_told_events_of_a_task_are_pruned_in_steps(tmp_path: Path, steps: list[tuple[str, int]]):
    leave = asyncio.Event()

    async def talk() -> None:
        for number in range(11):
            await current().notify(f"number {number}")
        await leave.wait()

    often = NoticeRate(seconds=0.0, per_minute=1_000)
    async with Meantime.open(tmp_path / "work.db", settings=Settings(notices=often)) as mt:
        thread = mt.thread("a")
        handle = await thread.start(Call(talk))
        told: list[Any] = []
        async with asyncio.timeout(LIMIT):
            async for _ in thread.wakeups():
                async with thread.turn(limit=100) as turn:
                    told += turn.notices
                    await turn.ack()
                if len(told) == 11:
                    break
        await runtime_of(mt).store.forget(Retention(told_events=2), 0.0)
        kept = await mt.notices("told", thread="a")
        assert [notice.id for notice in kept] == [notice.id for notice in told[-2:]]
        leave.set()
        await handle.wait()
    pruned = [count for name, count in steps if name == "prune_events"]
    assert sum(pruned) == 9
    assert max(pruned) == STEP


@pytest.mark.parametrize("durability", ["full", "fast"])
async def test_commits_do_not_wait_for_a_reader_that_hinders_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str
):
    """They would wait for as long as a transaction may wait. A checkpoint can be tried again."""
    monkeypatch.setattr(writer, "WAL_IDLE", 1)
    monkeypatch.setattr(writer, "WAL_FULL", 1)
    path = tmp_path / "work.db"
    statements: list[str] = []
    async with Meantime.open(path, durability=durability) as mt:
        thread = mt.thread("a")
        await (await thread.start(Call(int, "1"))).wait()
        await until_all_is_in_the_database(mt)
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tasks").fetchone()
        database_of(mt).set_trace_callback(statements.append)
        for _ in range(3):
            await (await thread.start(Call(int, "1"))).wait()
        waits = [one for one in statements if one.startswith(("PRAGMA busy_timeout", "PRAGMA wal_check"))]
        assert waits == ["PRAGMA wal_checkpoint(PASSIVE)"], "it does not wait, and is not tried again so soon"
        assert Path(f"{path}-wal").stat().st_size > 0
        reader.close()
    assert not Path(f"{path}-wal").exists()


async def test_a_wal_that_grows_too_long_is_emptied_even_if_that_takes_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "WAL_IDLE", 1)
    monkeypatch.setattr(writer, "WAL_MOST", 2)
    statements: list[str] = []
    async with Meantime.open(tmp_path / "work.db") as mt:
        database_of(mt).set_trace_callback(statements.append)
        await (await mt.thread("a").start(Call(int, "1"))).wait()
    assert "PRAGMA wal_checkpoint(PASSIVE)" not in statements
    assert f"PRAGMA busy_timeout={connection.BUSY}" in statements


@pytest.mark.parametrize("durability", ["full", "fast"])
async def test_commits_write_over_a_wal_that_is_in_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, durability: str
):
    """A file that grows has to be written to the disk with its new size, which takes far longer to sync."""
    path = tmp_path / "work.db"
    sizes: list[int] = []
    async with Meantime.open(path, durability=durability) as mt:
        thread = mt.thread("a")
        for number in range(30):
            if number == 10:
                monkeypatch.setattr(writer, "WAL_IDLE", 1)
                monkeypatch.setattr(writer, "WAL_FULL", 1)
            await (await thread.start(Call(int, "1"))).wait()
            if number > 10:
                await until_all_is_in_the_database(mt)
            sizes.append(Path(f"{path}-wal").stat().st_size)
    assert sizes[0] < sizes[9], "it grows until the first checkpoint"
    assert len(set(sizes[11:])) == 1, "and not from then on"


async def test_a_wal_that_had_to_grow_long_gives_its_disk_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(writer, "WAL_FULL", 100_000)
    monkeypatch.setattr(connection, "WAL_KEPT", 100_000)
    monkeypatch.setattr(writer, "WAL_AGAIN", 0)
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        thread = mt.thread("a")
        await thread.start(Call(int, "1"))
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tasks").fetchone()
        for _ in range(20):
            await (await thread.start(Call(int, "1"))).wait()
        grown = Path(f"{path}-wal").stat().st_size
        reader.close()
        monkeypatch.setattr(writer, "WAL_IDLE", 1)
        for _ in range(3):
            await (await thread.start(Call(int, "1"))).wait()
        assert Path(f"{path}-wal").stat().st_size <= 200_000 < grown


async def test_a_checkpoint_that_a_reader_cuts_short_is_tried_again_after_a_megabyte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Counted from what it left, not from what it found: readers that come and go made it ever rarer."""
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        thread = mt.thread("a")
        for _ in range(10):
            await (await thread.start(Call(int, "1"))).wait()
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tasks").fetchone()
        monkeypatch.setattr(writer, "WAL_IDLE", 1)
        await (await thread.start(Call(int, "1"))).wait()
        assert writer.WAL_AGAIN < writer_of(mt)._again_over < writer.WAL_AGAIN + 400_000
        reader.close()


HOLD = """
import fcntl, sys
with open(sys.argv[1], "r+b") as index:
    fcntl.lockf(index, fcntl.LOCK_EX, 1, 121)  # the byte that SQLite locks for a checkpoint
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_checkpoint(path: Path) -> Iterator[None]:
    """By another program."""
    line = [sys.executable, "-c", HOLD, f"{path}-shm"]
    other = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        yield
    finally:
        other.communicate("", timeout=LIMIT)


async def test_a_checkpoint_that_another_program_hinders_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The lock would say that the database has it, and a kill would look like damage."""
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        thread = mt.thread("a")
        await (await thread.start(Call(int, "1"))).wait()
        with held_checkpoint(path):
            monkeypatch.setattr(writer, "WAL_IDLE", 1)
            for _ in range(3):
                await (await thread.start(Call(int, "1"))).wait()
            noted = json.loads(Path(f"{path}.lock").read_text())["checkpoints"]
            assert noted <= (checkpoints.number_in(path) or 0)


async def test_a_ledger_that_was_closed_beside_a_reader_opens_after_a_restart_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The WAL that stays is its own, and the mark says so for another boot, too."""
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        monkeypatch.setattr(writer, "WAL_IDLE", 1)
        for _ in range(3):
            await (await mt.thread("a").start(Call(int, "1"))).wait()
        await until_all_is_in_the_database(mt)  # so the WAL begins anew at the close, beside the reader
        reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM tasks").fetchone()
    assert wal_mark.has_frames(path)
    reader.close()
    monkeypatch.setattr(wal_mark, "boot", lambda: "00000000-0000-4000-8000-000000000000")
    async with Meantime.open(path) as mt:
        assert len(await mt.list("all")) == 3
