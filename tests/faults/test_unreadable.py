"""A row that cannot be read, in a ledger that is sound otherwise: it stands in nobody's way, and is named."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.waiting import until_async

from meantime import Call, LedgerDamaged, Meantime
from meantime.app.ledger_audit import audit
from meantime.app.ledger_backup import back_up
from meantime.stores.sqlite import contents, ledger_file, unreadable_rows
from runtimes import runtime_of

from .damaged import work

pytestmark = pytest.mark.anyio
IDS = [f"a-{number}" for number in range(6)]
BAD = {
    "garbage": b"\x00\xff not what it was",
    "cut": b'{"id":"a-2","thr',
    "other": b"{}",
    "number": 7,
    "text": '{"id"',
    "empty": b"",
}


async def fill(ledger: Path) -> None:
    async with Meantime.open(ledger) as mt:
        for id in IDS:
            await (await mt.thread("t").start(Call(work, 1), id=id)).wait()


def spoil(ledger: Path, id: str, body: object) -> None:
    with closing(sqlite3.connect(ledger)) as db:
        db.execute("UPDATE tasks SET body = ? WHERE id = ?", (body, id))
        db.commit()


@pytest.fixture(params=BAD.values(), ids=list(BAD))
async def ledger(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "work.db"
    await fill(path)
    spoil(path, "a-2", request.param)
    return path


async def test_the_rest_of_its_thread_is_told(ledger: Path) -> None:
    rest = [id for id in IDS if id != "a-2"]
    async with Meantime.open(ledger) as mt:
        assert (await mt.stats())["unreadable"] == 1
        assert {task.id for task in await mt.list()} == set(rest)
        async with mt.thread("t").turn() as turn:
            assert [notice.task.id for notice in turn.notices] == rest
            assert "a-2" not in await turn.reminder()
            await turn.ack()
        async with mt.thread("t").turn() as turn:
            assert not turn.notices
        assert (await mt.stats())["notices.parked"] == 1
        with pytest.raises(LedgerDamaged, match="'a-2' is damaged"):
            await mt.get("a-2")


async def test_the_audit_names_it_and_a_backup_is_made_all_the_same(ledger: Path, tmp_path: Path) -> None:
    findings = audit(ledger, owned=False, now=0.0).findings
    (found,) = [finding for finding in findings if "cannot be read" in finding.what]
    assert found.wrong
    assert [which.partition(" ")[0] for which in found.which] == ["a-2"]
    account = back_up(ledger, tmp_path / "backup.tar")
    assert account.tasks == len(IDS)
    assert any("cannot be read" in finding.what for finding in account.findings)


async def test_one_that_is_spoiled_while_the_ledger_is_open_is_parked_when_it_is_met(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        for id in IDS:
            await (await mt.thread("t").start(Call(work, 1), id=id)).wait()
        for id in IDS[:2]:
            spoil(path, id, b"garbage")
        async with mt.thread("t").turn() as turn:
            assert [notice.task.id for notice in turn.notices] == IDS[2:]
        assert (await mt.stats())["notices.parked"] == 2


async def test_columns_that_contradict_the_body_are_found(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    await fill(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE tasks SET thread = 'x' WHERE id = 'a-3'")
        db.commit()
        assert [(bad.row[1], bad.problem) for bad in contents.find_all(db)] == [
            ("a-3", "its columns contradict its body")
        ]


async def test_a_large_ledger_is_read_after_it_is_open(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_file, "ALWAYS_CHECKED", 0)
    Path(f"{ledger}.lock").write_text('{"clean": false, "made": true}')
    async with Meantime.open(ledger) as mt:

        async def is_read() -> bool:
            return "checking" not in await mt.stats()

        await until_async(is_read, "the whole ledger is read")
        assert (await mt.stats())["unreadable"] == 1


async def test_a_thread_whose_notices_cannot_be_read_at_all_waits_for_none_of_them(tmp_path: Path) -> None:
    """A turn goes on to the next ones, however many it passes over."""
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        for id in IDS:
            await (await mt.thread("t").start(Call(work, 1), id=id)).wait()
        for id in IDS[:4]:
            spoil(path, id, b"garbage")
        async with mt.thread("t").turn(limit=2) as turn:
            assert [notice.task.id for notice in turn.notices] == IDS[4:]
            await turn.ack()
        assert (await mt.stats())["notices.parked"] == 4


async def test_a_notice_whose_task_is_gone_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        await (await mt.thread("t").start(Call(work, 1), id="a-0")).wait()
        with closing(sqlite3.connect(path)) as db:
            db.execute("DELETE FROM tasks WHERE id = 'a-0'")
            db.commit()
        async with mt.thread("t").turn() as turn:
            assert not turn.notices


async def test_a_notice_whose_own_row_is_damaged_is_parked_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    await fill(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE notices SET at = at + 1 WHERE number = 3")
        db.commit()
    async with Meantime.open(path) as mt:
        async with mt.thread("t").turn() as turn:
            assert [notice.task.id for notice in turn.notices] == [id for id in IDS if id != "a-2"]
            await turn.ack()
        stats = await mt.stats()
        assert (stats["notices.parked"], stats["unreadable"]) == (1, 1)


async def test_a_task_that_is_found_by_an_id_that_its_body_does_not_have_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    await fill(path)
    async with Meantime.open(path) as mt:
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE tasks SET id = 'a-9' WHERE id = 'a-3'")
            db.commit()
        with pytest.raises(LedgerDamaged, match="'a-9' is damaged"):
            await mt.get("a-9")


async def test_events_that_cannot_be_read_are_passed_over_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    await fill(path)
    async with Meantime.open(path) as mt:
        store = runtime_of(mt).store
        (first, *_, last) = await store.events(0, 1_000)
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE events SET at = at + 1 WHERE seq < ?", (last.seq,))
            db.commit()
        assert await store.events(first.seq - 1, 1) == [last]


async def test_only_so_many_unreadable_rows_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unreadable_rows, "MOST", 3)
    found = unreadable_rows.Unreadable(tmp_path / "work.db")
    for number in range(10):
        found.note(number, "garbage")
    assert len(found) == 3
