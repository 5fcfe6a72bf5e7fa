"""What a salvage brings back, compared with what was there."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from meantime import Call, LedgerDamaged, Meantime
from meantime.app.ledger_audit import audit
from meantime.stores.sqlite.salvage_report import FILE

from .damaged import EVERY, Killed, work
from .test_unreadable import spoil

PAGE = 4096
THREADS = ("a", "b", "c")
TRUTH = {f"{thread}-{number}": thread for thread in THREADS for number in range(40)}


async def fill(ledger: Path) -> None:
    async with Meantime.open(ledger) as mt:
        for id, thread in TRUTH.items():
            handle = await mt.thread(thread).start(Call(work, 1), id=id, description="x" * 400)
            await handle.wait()
        home = mt.thread("a")
        async with home.turn() as turn:
            transcript = home.transcript
            for notice in turn.notices:
                transcript.add(notice.id, notice.id)
            await turn.ack(transcript=transcript)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    asyncio.run(fill(path))
    return path.read_bytes()


def damaged(folder: Path, content: bytes) -> Path:
    ledger = folder / "ledger.db"
    ledger.write_bytes(content)
    Path(f"{ledger}.lock").write_text('{"clean": false, "made": true}')
    return ledger


async def salvaged(ledger: Path) -> tuple[set[str], dict[str, list[str]]]:
    """The tasks that came back, and what each thread is told then."""
    async with Meantime.open(ledger, salvage=True) as mt:
        ids = {task.id for task in await mt.list(limit=1_000)}
        told: dict[str, list[str]] = {}
        for thread in THREADS:
            async with mt.thread(thread).turn() as turn:
                told[thread] = [notice.task.id for notice in turn.notices]
                await turn.ack()
    return ids, told


def judged(ledger: Path) -> tuple[set[str], dict[str, list[str]]]:
    """Nothing is made up, every ending is told, and nothing contradicts."""
    ids, told = asyncio.run(salvaged(ledger))
    assert ids <= set(TRUTH)
    assert all(TRUTH[id] == thread for thread, told_ids in told.items() for id in told_ids)
    for thread in ("b", "c"):  # nobody was told of these before
        assert sorted(told[thread]) == sorted(id for id in ids if TRUTH[id] == thread)
    findings = audit(ledger, owned=False, now=time.time()).findings
    assert not [finding for finding in findings if finding.wrong], findings
    return ids, told


@pytest.mark.faults
def test_a_file_that_is_cut_gives_back_what_can_be_read_by_key(tmp_path: Path, whole: bytes) -> None:
    ledger = damaged(tmp_path, whole[: len(whole) * 9 // 10])
    with pytest.raises(LedgerDamaged):
        asyncio.run(salvaged_not(ledger))
    ids, _ = judged(ledger)
    assert len(ids) >= len(TRUTH) * 7 // 10


async def salvaged_not(ledger: Path) -> None:
    async with Meantime.open(ledger):
        return


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(12))
def test_pages_of_garbage_lose_no_more_than_their_rows(tmp_path: Path, whole: bytes, seed: int) -> None:
    rng = random.Random(seed)
    pages = len(whole) // PAGE
    content = bytearray(whole)
    for page in rng.sample(range(1, pages), 3):
        content[page * PAGE : (page + 1) * PAGE] = rng.randbytes(PAGE)
    ledger = damaged(tmp_path, bytes(content))
    try:
        asyncio.run(salvaged_not(ledger))
    except LedgerDamaged:
        judged(ledger)
    else:
        pytest.fail("the damage was not noticed")


@pytest.mark.faults
def test_an_ending_without_its_notice_gets_one(tmp_path: Path, whole: bytes) -> None:
    """The notices are lost with their pages; the transcript still says what was told."""
    content = bytearray(whole)
    for page in pages_of(whole, tmp_path, "notices"):
        content[(page - 1) * PAGE : page * PAGE] = b"\xff" * PAGE
    ids, told = judged(damaged(tmp_path, bytes(content)))
    assert ids == set(TRUTH)
    assert told["a"] == []


def pages_of(whole: bytes, folder: Path, table: str) -> list[int]:
    path = folder / "look.db"
    path.write_bytes(whole)
    db = sqlite3.connect(path)
    try:
        rows = db.execute("SELECT pageno FROM dbstat WHERE name = ?", (table,)).fetchall()
    except sqlite3.OperationalError:
        (root,) = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
        rows = [(root,)]
    finally:
        db.close()
        path.unlink()
    return [page for (page,) in rows]


@pytest.mark.faults
def test_a_record_that_makes_no_sense_is_left_out_and_named(tmp_path: Path, whole: bytes) -> None:
    ledger = damaged(tmp_path, whole)
    spoil(ledger, "b-7", b"garbage")
    content = bytearray(ledger.read_bytes())
    content[-PAGE:] = b"\xff" * PAGE  # so that it is salvaged at all
    ledger.write_bytes(content)
    ids, _ = judged(ledger)
    assert "b-7" not in ids
    (report,) = tmp_path.glob(f"ledger.db.salvaged-*/{FILE}")
    text = report.read_text()
    assert "thread c: " in text
    assert "b-7 (cannot be read)" in text
    findings = audit(ledger, owned=False, now=time.time()).findings
    assert any("b-7" in which for finding in findings for which in finding.which)


def test_frames_behind_a_damaged_one_come_back(tmp_path: Path) -> None:
    """SQLite stops at the first bad frame; only the page in it is lost."""
    killed = Killed(tmp_path)
    size = killed.wal.stat().st_size
    with killed.wal.open("r+b") as file:
        file.seek(size // 3)
        file.write(b"\xff" * 100)
    with pytest.raises(LedgerDamaged):
        asyncio.run(salvaged_not(killed.ledger))
    found = asyncio.run(listed(killed.ledger, salvage=True))
    assert found <= EVERY
    assert len(found) >= len(EVERY) * 3 // 4
    findings = audit(killed.ledger, owned=False, now=time.time()).findings
    assert not [finding for finding in findings if finding.wrong], findings


async def listed(ledger: Path, **options: Any) -> set[str]:
    async with Meantime.open(ledger, **options) as mt:
        return {task.id for task in await mt.list(limit=1_000)}


@pytest.mark.faults
def test_a_ledger_of_which_only_the_wal_is_left_comes_back(tmp_path: Path) -> None:
    killed = Killed(tmp_path)
    killed.ledger.unlink()
    with pytest.raises(LedgerDamaged, match=f"{len(EVERY)} tasks"):
        asyncio.run(salvaged_not(killed.ledger))
    assert asyncio.run(listed(killed.ledger, salvage=True)) == EVERY


GARBLED = {  # a letter of each has another bit
    "a state of a notice": "UPDATE notices SET state = CAST(x'75ee' AS TEXT) WHERE thread || number = 'b3'",
    "the name of a thread": "UPDATE threads SET id = CAST(x'e261' AS TEXT) WHERE id = 'b'",
    "the mark of a notice": "UPDATE notices SET nonce = CAST(x'e1' AS TEXT) WHERE thread || number = 'b4'",
    "a name of a task in the journal": "UPDATE events SET task_id = CAST(x'62ad31' AS TEXT) WHERE seq = 50",
}


@pytest.mark.parametrize("statement", GARBLED.values(), ids=GARBLED)
def test_a_text_that_is_not_utf8_spoils_its_own_row_alone(
    tmp_path: Path, whole: bytes, statement: str
) -> None:
    ledger = damaged(tmp_path, whole)
    with closing(sqlite3.connect(ledger, isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        assert db.execute(statement).rowcount == 1
    garbled = ledger.read_bytes()
    ledger.write_bytes(garbled[: len(garbled) * 99 // 100])
    ids, _ = judged(ledger)
    assert len(ids) > len(TRUTH) * 0.9
