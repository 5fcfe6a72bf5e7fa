"""A ledger of every schema that has landed is brought up to date, and all that it holds is still there.

Each is made as its own version made it: by the landed migrations up to its number, and rows with the columns
that it knew. Their bodies are written down here, so that a change of the model meets them as they were.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.meta.test_migrations import LANDED

from meantime import Call, Duplicate, LedgerTooNew, Meantime
from meantime.stores.sqlite import search_columns
from meantime.stores.sqlite.sql import (
    APPLICATION,
    _expected_schema,
    _schema_of,
    _statements,
    migrate,
    migrations,
)

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]
AT = time.time() - 60  # of late: old endings are forgotten as soon as somebody has the time
UNCOUNTED = (
    4  # the last schema without counters: those of later ones are what the migration counts in these rows
)
CHECKED = (("tasks", "status"), ("notices", "state"), ("notices", "kind"))
WORK = {"kind": "call", "name": "shop:order", "input": {"args": ["ü", 2**53]}}


def body(id: str, status: str, outcome: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    run: dict[str, Any] = {"queued_at": AT, "started_at": AT}
    if outcome is not None:
        run |= {"ended_at": AT + 3, "duration": 3.0}
    found = {"id": id, "thread": "conv", "work": WORK, "status": status, "version": 2, "created_at": AT}
    found |= {"updated_at": AT + 3, "run": run, "description": f"The task {id}", "batch": "b1"}
    return {**found, **({"outcome": outcome} if outcome else {}), **more}


DONE = {"ended": "completed", "result": {"number": 7, "text": "ünï"}}
FAILED = {"ended": "failed", "code": "ValueError", "message": "ValueError: no"}
FIRST_RUN = body("again", "completed", {"ended": "completed", "result": "the first"})
TASKS = [
    body("told", "completed", DONE, tool_call_id="call-1"),
    body("unread", "failed", FAILED),
    body("parked", "completed", DONE),
    body("hidden", "completed", DONE, hidden=True),
    body("again", "completed", DONE)
    | {"run": {"number": 2, "started_at": AT, "ended_at": AT + 3, "duration": 3.0}},
    body("running", "running"),
]
NOTICES = {  # state, turn, parked_for, told_at
    "told": ("told", "turn_1", None, AT + 4),
    "unread": ("unread", None, None, None),
    "parked": ("parked", None, "failures", None),
    "hidden": ("told", "turn_1", None, AT + 4),
    "again": ("unread", None, None, None),
}


def ledger(path: Path, schema: int) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        search_columns.teach(db)
        _migrate(db, range(1, min(schema, UNCOUNTED) + 1))
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {schema}")
        for seq, task in enumerate(TASKS, 1):
            _insert_task(db, schema, seq, task)
        db.execute("INSERT INTO runs VALUES ('again', 1, ?)", [json.dumps(FIRST_RUN).encode()])
        db.execute("INSERT INTO threads VALUES ('conv', ?, ?)", [len(NOTICES), AT])
        said = b'{"role":"user","parts":[{"text":"hello"}]}'
        db.execute("INSERT INTO transcripts VALUES ('conv', 1, 'told.1', ?)", [said])
        _migrate(db, range(UNCOUNTED + 1, schema + 1))
    path.with_name(f"{path.name}.lock").write_text('{"clean": true, "made": true}')


def _migrate(db: sqlite3.Connection, numbers: range) -> None:
    for number in numbers:
        for statement in _statements(migrations()[number]):
            db.execute(statement)


def _insert_task(db: sqlite3.Connection, schema: int, seq: int, task: dict[str, Any]) -> None:
    number = task["run"].get("number", 1)
    row: dict[str, Any] = {
        "seq": seq, "id": task["id"], "thread": "conv", "status": task["status"], "version": 2, "run": number,
        "batch": "b1", "tool_call": task.get("tool_call_id"), "hidden": int(task.get("hidden", False)),
        "updated": AT + 3, "body": json.dumps(task).encode(),
    }  # fmt: skip
    if schema >= 2:
        words = task["description"].casefold()
        row |= {"agent": "call", "words": words, "session": None, "duration": task["run"].get("duration")}
    if schema >= 4:
        row["follows"] = 0
    db.execute(f"INSERT INTO tasks ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", [*row.values()])
    for kind in ("submitted", "ended")[: 2 if "outcome" in task else 1]:
        event = (kind, task["id"], "conv", number, task["status"], AT)
        db.execute("INSERT INTO events (kind, task_id, thread, run, status, at) VALUES (?,?,?,?,?,?)", event)
    if (found := NOTICES.get(task["id"])) is not None:
        state, turn, parked_for, told_at = found
        notice = ("conv", seq, seq, number, state, turn, parked_for, AT + 3, told_at)
        db.execute(
            "INSERT INTO notices (thread, number, task, run, state, turn, parked_for, at, told_at) "
            "VALUES (?,?,?,?,?,?,?,?,?)",
            notice,
        )


@pytest.mark.behaviour("P11")
@pytest.mark.parametrize("schema", range(1, len(LANDED) + 1))
async def test_a_ledger_of_every_schema_keeps_all_that_it_holds(tmp_path: Path, schema: int):
    path = tmp_path / "work.db"
    ledger(path, schema)
    async with Meantime.open(path) as mt:
        thread = mt.thread("conv")
        for made in TASKS:
            task = await thread.get(made["id"])
            assert (task.description, task.work.input) == (made["description"], WORK["input"])
            assert task.status == (made["status"] if made["status"] != "running" else "lost")
        assert (await thread.output("told")).text == (await thread.output("parked")).text != ""
        assert await thread.result("told") == DONE["result"]
        assert [run.run.number for run in await thread.runs("again")] == [1, 2]
        assert [message.text for message in await thread.transcript.messages()] == ["hello"]
        assert [task.id for task in await thread.list("all") if task.id == "hidden"] == []
        with pytest.raises(Duplicate, match="told"):
            await thread.start(Call(int), tool_call_id="call-1")
        async with thread.turn() as turn:
            assert [notice.id for notice in turn.notices] == ["unread.1", "again.2", "running.1"]
            await turn.ack()
        assert [notice.id for notice in await mt.notices("parked")] == ["parked.1"]
        reminder = await thread.remind("a table that it did not have", delay=3600)
        assert [one.id for one in await thread.schedules()] == [reminder.id]
        found = await mt._runtime.statistics(None)
        assert found.by_agent == {"call": len(TASKS) - 1}  # all but the one that was cleared
        assert len(await mt._runtime.events(0, 100)) == 2 * len(TASKS)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (max(migrations()),)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        for refused in (f"UPDATE {table} SET {column} = 'x'" for table, column in CHECKED):
            with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                db.execute(refused)
        assert _schema_of(db) == _expected_schema()
    async with Meantime.open(path) as mt, mt.thread("conv").turn() as turn:
        assert turn.notices == []


@pytest.mark.behaviour("P11")
async def test_a_newer_schema_is_refused_and_not_touched(tmp_path: Path):
    path = tmp_path / "work.db"
    ledger(path, len(LANDED))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 900")
    before = path.read_bytes()
    with pytest.raises(LedgerTooNew, match=r"schema 900; this Meantime knows up to \d+"):
        await Meantime.open(path)
    assert path.read_bytes() == before


class RefusingConnection(sqlite3.Connection):
    """Refuses what SQLite refuses in defensive mode, which Python can turn on since 3.12 only."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if sql.startswith("UPDATE sqlite_schema"):
            raise sqlite3.OperationalError("table sqlite_master may not be modified")
        return super().execute(sql, parameters)


def defensive(path: Path) -> sqlite3.Connection:
    """As the SQLite of macOS is from the beginning."""
    if sys.version_info < (3, 12):
        return sqlite3.connect(path, isolation_level=None, factory=RefusingConnection)
    db = sqlite3.connect(path, isolation_level=None)
    db.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
    return db


async def test_a_system_that_protects_the_text_of_the_schema_keeps_its_older_checks(tmp_path: Path):
    path = tmp_path / "work.db"
    ledger(path, 8)
    with closing(defensive(path)) as db:
        migrate(db)
        assert (
            "CHECK (status IN"
            in db.execute("SELECT sql FROM sqlite_schema WHERE name = 'tasks'").fetchone()[0]
        )
    async with Meantime.open(path) as mt:
        thread = mt.thread("conv")
        handle = await thread.start(Call(int, "7"))
        await handle.wait()
        async with thread.turn() as turn:
            assert f"{handle.id}.1" in [notice.id for notice in turn.notices]
            await turn.ack()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert _schema_of(db) == _expected_schema()


def test_another_failure_of_a_migration_is_not_passed_over(tmp_path: Path):
    class Full(sqlite3.Connection):
        def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
            if sql.startswith("UPDATE sqlite_schema"):
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql, parameters)

    path = tmp_path / "work.db"
    ledger(path, 8)
    with closing(sqlite3.connect(path, isolation_level=None, factory=Full)) as db:
        with pytest.raises(sqlite3.OperationalError, match="full"):
            migrate(db)
        assert db.execute("PRAGMA user_version").fetchone() == (8,)
