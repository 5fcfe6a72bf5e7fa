"""A turn takes as many steps of SQLite beside a thousand unread notices as beside ten. Steps are counted, not
seconds, so that the test says the same on a busy machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import msgspec
import pytest

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Completed, Run, Task, Work
from meantime.stores.sqlite import inbox_transactions
from meantime.stores.sqlite.commit import SQL, encode
from meantime.stores.sqlite.sql import migrate

FEW, MANY = 10, 1_000


def filled(unread: int) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db)
    body = Task(
        id="t_x", thread="a", work=Work("call", "m:f"), status=Status.COMPLETED, run=Run(queued_at=1.0),
        created_at=1.0, updated_at=1.0, outcome=Completed(1),
    )  # fmt: skip
    db.execute("BEGIN")
    for number in range(1, unread + 1):
        task = msgspec.structs.replace(body, id=f"t_{number:010}")
        given = (number, task.id, "a", "completed", 1, 1, "", "", 0, 1.0, encode(task))
        db.execute(SQL["insert_task"], (*given, "call", "x", "", "call", ""))
        db.execute(SQL["insert_notice"], ("a", number, 0, number, 1, 0, "unread", 1.0, "", "", None))
    db.execute("COMMIT")
    return db


def steps(db: sqlite3.Connection, verb: Callable[[sqlite3.Cursor], object]) -> int:
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    db.set_progress_handler(count, 1)
    verb(db.cursor())
    db.set_progress_handler(None, 1)
    return taken


def lease(cursor: sqlite3.Cursor) -> None:
    assert len(inbox_transactions.lease(cursor, "a", "turn-1", 3, 2.0)) == 3


def settle(cursor: sqlite3.Cursor) -> None:
    assert len(inbox_transactions.settle(cursor, "a", "turn-1", (), (), 3.0).told) == 3


def release(cursor: sqlite3.Cursor) -> None:
    assert len(inbox_transactions.release(cursor, "a", "turn-1", True, 5)) == 3


def count_parked(cursor: sqlite3.Cursor) -> None:
    assert cursor.execute(SQL["count_open_notices_of"], ('["parked"]', "a")).fetchone() == (0,)


def unpark(cursor: sqlite3.Cursor) -> None:
    assert inbox_transactions.changed(cursor, "unpark_all", "a") == 0


VERBS = {
    "lease": (lease,),
    "settle": (lease, settle),
    "release": (lease, release),
    "count parked": (count_parked,),
    "unpark": (unpark,),
}


@pytest.fixture(scope="module")
def ledgers() -> Iterator[list[sqlite3.Connection]]:
    with closing(filled(FEW)) as few, closing(filled(MANY)) as many:
        yield [few, many]


@pytest.mark.parametrize("name", VERBS)
def test_a_turn_does_not_read_what_is_unread_beside_it(ledgers: list[sqlite3.Connection], name: str):
    *before, verb = VERBS[name]
    taken: list[int] = []
    for db in ledgers:
        db.execute("BEGIN")
        for earlier in before:
            earlier(db.cursor())
        taken.append(steps(db, verb))
        db.execute("ROLLBACK")
    few, many = taken
    assert many < 1.5 * few, f"{name}: {few} steps beside {FEW} unread notices, {many} beside {MANY}"


@pytest.mark.parametrize("states", [["unread"], ["leased"], ["parked"], ["unread", "leased", "parked"]])
def test_open_notices_are_counted_by_state(states: list[str]):
    with closing(filled(FEW)) as db:
        inbox_transactions.lease(db.cursor(), "a", "turn-1", 3, 2.0)
        inbox_transactions.release(db.cursor(), "a", "turn-1", True, 1)
        inbox_transactions.lease(db.cursor(), "a", "turn-2", 2, 2.0)
        there = {"unread": 5, "leased": 2, "parked": 3}
        counted = db.execute(SQL["count_open_notices_of"], (encode(states).decode(), "a")).fetchone()
        assert counted == (sum(there[state] for state in states),)
