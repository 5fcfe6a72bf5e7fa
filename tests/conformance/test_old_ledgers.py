"""A ledger from before people could look by columns is brought up to date, also by way of a salvage."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from meantime import Call, LedgerDamaged, Meantime
from meantime.ports.store import Query
from meantime.stores.sqlite.commit import SQL
from meantime.stores.sqlite.sql import _statements, migrations
from runtimes import runtime_of

pytestmark = pytest.mark.anyio
COLUMNS = ("agent", "words", "session", "duration", "follows")


def with_the_first_notices(db: sqlite3.Connection) -> None:
    """The table of notices as the first schema had it: each was the ending of a run."""
    db.execute("ALTER TABLE notices RENAME TO newer")
    for name in ("notices_open", "notices_leased", "notices_parked"):
        db.execute(f"DROP INDEX {name}")
    for statement in _statements(migrations()[1]):
        if " notices" in statement:
            db.execute(statement)
    kept = "thread, number, run, state, turn, deliveries, failures, parked_for, at, told_at, nonce"
    db.execute(f"INSERT INTO notices (task, {kept}) SELECT source, {kept} FROM newer")
    db.execute("DROP TABLE newer")


def without_counters(db: sqlite3.Connection) -> None:
    """As it was before the fifth schema, and so before later ones."""
    with_the_first_notices(db)
    db.execute("DROP INDEX tasks_by_parent")
    for table, column in (("tasks", "kind"), ("tasks", "parent"), ("threads", "turns"), ("threads", "turn")):
        db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    db.execute("DROP TRIGGER ended_task_deleted")
    for table in ("ended_counts", "settled_counts", "checkpoints", "schedules"):
        db.execute(f"DROP TABLE {table}")
    db.execute("ALTER TABLE events DROP COLUMN sum")
    for table in ("tasks", "runs", "transcripts"):  # bodies had no checksum in front
        db.execute(f"UPDATE {table} SET body = CAST('{{' || substr(body, 19) AS BLOB)")
    (_, _, path) = db.execute("PRAGMA database_list").fetchone()
    lock = Path(f"{path}.lock")
    said = json.loads(lock.read_text())
    del said["checkpoints"]
    lock.write_text(json.dumps(said))


@pytest.fixture
async def old(tmp_path: Path) -> Path:
    """A ledger as the first schema had it, with one ended task."""
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        handle = await mt.thread("a").start(Call(int, "1"), id="kept", description="Über den Fluss")
        await handle.wait()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        without_counters(db)
        for index in ("tasks_by_session", "tasks_hidden", "tasks_numbers", "tasks_following"):
            db.execute(f"DROP INDEX {index}")
        for column in COLUMNS:
            db.execute(f"ALTER TABLE tasks DROP COLUMN {column}")
        db.execute("PRAGMA user_version = 1")
        db.execute("VACUUM")
    return path


async def check(mt: Meantime) -> None:
    store = runtime_of(mt).store
    assert [task.id for task in await store.list(Query(search="über"))] == ["kept"]
    assert [task.id for task in await store.list(Query(agent="call"))] == ["kept"]
    found = await store.statistics(None)
    assert (found.total, found.by_agent) == (1, {"call": 1})
    assert found.longest is not None


@pytest.mark.behaviour("H1")
async def test_an_older_ledger_can_be_searched(old: Path):
    async with Meantime.open(old) as mt:
        await check(mt)


@pytest.mark.behaviour("P11")
async def test_a_damaged_older_ledger_loses_nothing_by_its_age(old: Path):
    data = bytearray(old.read_bytes())
    with closing(sqlite3.connect(old)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'tasks_by_status'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    data[(page - 1) * size : page * size] = b"\xff" * size
    old.write_bytes(data)
    with pytest.raises(LedgerDamaged):
        await Meantime.open(old)
    async with Meantime.open(old, salvage=True) as mt:
        await check(mt)


@pytest.mark.behaviour("H1")
async def test_a_ledger_of_the_second_schema_is_added_up_without_reading_its_tasks(tmp_path: Path):
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        for id in ("one", "two"):
            await (await mt.thread("a").start(Call(int, "1"), id=id)).wait()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        without_counters(db)
        for index in ("tasks_numbers", "tasks_following"):
            db.execute(f"DROP INDEX {index}")
        db.execute("ALTER TABLE tasks DROP COLUMN follows")
        db.execute("PRAGMA user_version = 2")
    async with Meantime.open(path) as mt:
        assert (await runtime_of(mt).store.statistics(None)).by_agent == {"call": 2}
    with closing(sqlite3.connect(path)) as db:
        for name in ("statistics_of_active", "statistics_of_ended"):
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {SQL[name]}")]
            assert not [step for step in plan if step.startswith(("SCAN t ", "SCAN tasks"))], plan
        ends = [step for step in plan if step.startswith("SEARCH t ")]
        assert all("<expr>=? AND agent=?" in step for step in ends), ends  # the ends of a stretch
