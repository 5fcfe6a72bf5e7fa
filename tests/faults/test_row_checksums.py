"""A flipped bit in a row that still decodes is damage, and treated as a row that cannot be read."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.waiting import until_async

from meantime import Call, LedgerDamaged, Meantime
from meantime.app.ledger_audit import audit
from meantime.stores.sqlite import contents, ledger_file
from meantime.stores.sqlite.checksums import checksum, of_event

from .damaged import work
from .test_unreadable import IDS, fill

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "work.db"
    await fill(path)
    return path


def execute(ledger: Path, sql: str, *values: object) -> Any:
    with closing(sqlite3.connect(ledger, isolation_level=None)) as db:
        return db.execute(sql, values).fetchall()


@example(1e15)
@example(0.1 + 0.2)
@given(st.floats(1.0, 1e16) | st.floats())
def test_a_checksum_writes_its_time_as_python_does(at: float):
    """Ledgers out there have such sums, and msgspec writes some numbers in another way."""
    assert of_event("ended", "t_x", "a", 1, "lost", at) == checksum(f"ended\0t_x\0a\x001\0lost\0{at!r}")


def findings(ledger: Path) -> list[str]:
    return [finding.what for finding in audit(ledger, owned=False, now=0.0).findings if finding.wrong]


async def test_a_flip_in_a_body(ledger: Path) -> None:
    """One bit of its result, in the file itself."""
    content = bytearray(ledger.read_bytes())
    at = content.index(b'"id":"a-2"')
    at = content.index(b'"result":1', at) + len('"result":')
    content[at] ^= 2  # a 1 becomes a 3
    ledger.write_bytes(content)
    async with Meantime.open(ledger) as mt:
        assert (await mt.stats())["unreadable"] == 1
        with pytest.raises(LedgerDamaged, match="'a-2' is damaged"):
            await mt.get("a-2")
        async with mt.thread("t").turn() as turn:
            assert [notice.task_id for notice in turn.notices] == [id for id in IDS if id != "a-2"]
        assert (await mt.stats())["notices.parked"] == 1
    assert any("cannot be read" in what for what in findings(ledger))


@pytest.mark.parametrize(
    "column",
    ["version = 7", "updated = 1.0", "words = 'x'", "duration = 99.0", "hidden = 1", "session = 'x'"],
)
async def test_a_column_beside_the_body(ledger: Path, column: str) -> None:
    execute(ledger, f"UPDATE tasks SET {column} WHERE id = 'a-3'")
    with closing(sqlite3.connect(ledger)) as db:
        assert [bad.row[1] for bad in contents.find_all(db)] == ["a-3"]


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("notices", "at = 1.0"),
        ("notices", "number = number + 100"),
        ("notices", "stood = '[9,0,9,0]'"),
        ("events", "kind = 'x'"),
    ],
)
async def test_notices_and_events(ledger: Path, table: str, change: str) -> None:
    where = "source = 3" if table == "notices" else "seq = 3"
    execute(ledger, f"UPDATE {table} SET {change} WHERE {where}")
    async with Meantime.open(ledger) as mt:
        assert (await mt.stats())["unreadable"] == 1
        async with mt.thread("t").turn() as turn:
            assert len(turn.notices) == len(IDS) - (table == "notices")
        events = await mt._runtime.events(0, 1_000)
        assert all(event.kind != "x" for event in events)


async def test_text_that_is_not_utf8_spoils_its_own_row_only(ledger: Path) -> None:
    execute(ledger, "UPDATE events SET kind = CAST(x'ff41' AS TEXT) WHERE seq = 2")
    async with Meantime.open(ledger) as mt:
        events = await mt._runtime.events(1, 1)
        assert [event.seq for event in events] == [3]
        assert (await mt.stats())["unreadable"] == 1


async def test_rows_of_earlier_versions_have_no_checksum(ledger: Path) -> None:
    for table in ("tasks", "runs", "transcripts"):
        execute(ledger, f"UPDATE {table} SET body = CAST('{{' || substr(body, 19) AS BLOB)")
    for table in ("notices", "events"):
        execute(ledger, f"UPDATE {table} SET sum = NULL")
    async with Meantime.open(ledger) as mt:
        assert {task.id for task in await mt.list()} == set(IDS)
        assert "unreadable" not in await mt.stats()


async def test_a_body_is_json_with_its_checksum_in_front(ledger: Path) -> None:
    ((body,),) = execute(ledger, "SELECT body FROM tasks WHERE id = 'a-1'")
    assert json.loads(body)["crc"] == f"{zlib.crc32(body[18:]):08x}"


async def test_a_spilled_payload(tmp_path: Path) -> None:
    async with Meantime.open(tmp_path / "work.db") as mt:
        handle = await mt.thread("t").start(Call(repeat, "long ", 40_000))
        assert len(await handle.result()) == 200_000
        (file,) = (tmp_path / "work.db.files").iterdir()
        content = file.read_bytes()
        file.write_bytes(content.replace(b"long", b"lung", 1))
        with pytest.raises(LedgerDamaged, match="checksum does not match"):
            await handle.result()
        file.unlink()
        with pytest.raises(LedgerDamaged, match="No such file"):
            await handle.result()
        file.write_bytes(content + b"more")
    assert findings(tmp_path / "work.db") == ["1 × a payload that is damaged"]


async def repeat(text: str, times: int) -> str:
    return text * times


async def checked(mt: Meantime) -> None:
    async def is_over() -> bool:
        return "checking" not in await mt.stats()

    await until_async(is_over, "the check is over")


async def test_a_large_ledger_is_read_in_slices_after_an_unclean_stop(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_file, "ALWAYS_CHECKED", 0)
    monkeypatch.setattr(contents, "SLICE", 2)
    execute(ledger, "UPDATE events SET kind = 'x' WHERE seq = (SELECT max(seq) FROM events)")
    lock = Path(f"{ledger}.lock")
    lock.write_text(lock.read_text().replace('"clean": true', '"clean": false'))
    async with Meantime.open(ledger) as mt:
        assert (await mt.stats())["checking"] == 1
    assert '"clean": false' in lock.read_text(), "it was closed before everything was read"
    async with Meantime.open(ledger) as mt:
        await checked(mt)
        assert (await mt.stats())["unreadable"] == 1
    assert '"clean": true' in lock.read_text()


async def test_damage_to_an_index_of_a_large_ledger_is_found_and_remembered(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_file, "ALWAYS_CHECKED", 0)
    ((page,),) = execute(ledger, "SELECT rootpage FROM sqlite_schema WHERE name = 'tasks_by_status'")
    content = bytearray(ledger.read_bytes())
    at = content.index(b"completed", (page - 1) * 4096)
    assert at < page * 4096
    content[at : at + 9] = b"cancelled"
    ledger.write_bytes(content)
    lock = Path(f"{ledger}.lock")
    lock.write_text(lock.read_text().replace('"clean": true', '"clean": false'))
    async with Meantime.open(ledger) as mt:
        await checked(mt)
        assert (await mt.stats())["damaged"] == 1
    with pytest.raises(LedgerDamaged, match="set aside"):
        async with Meantime.open(ledger):
            pass
    async with Meantime.open(ledger, salvage=True) as mt:
        assert {task.id for task in await mt.list()} == set(IDS)


async def test_a_spoiled_letter_of_the_schema_is_damage(ledger: Path) -> None:
    content = ledger.read_bytes()
    assert content.count(b"deliveries  INTEGER") == 1
    ledger.write_bytes(content.replace(b"deliveries  INTEGER", b"deliverims  INTEGER"))
    with pytest.raises(LedgerDamaged, match="set aside"):
        async with Meantime.open(ledger):
            pass


async def test_files_of_a_command_whose_record_is_damaged_do_not_stop_the_ledger(tmp_path: Path) -> None:
    from meantime import Shell

    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        await (await mt.thread("t").start(Shell("echo hello"), id="c-1")).wait()
        await (await mt.thread("t").start(Call(work, 1), id="c-2")).wait()
    execute(path, "UPDATE tasks SET body = x'00' WHERE id = 'c-1'")
    async with Meantime.open(path) as mt:
        assert [task.id for task in await mt.list()] == ["c-2"]
