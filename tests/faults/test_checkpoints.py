"""Checkpoints beside readers, other programs, failing disks and power cuts."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Call, Meantime
from meantime.stores.sqlite import connection, ledger_lock, store, wal_index, wal_mark, wal_overlay, writer
from meantime.stores.sqlite.disk_reserve import Reserve
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def writer_of(mt: Meantime) -> writer.Writer:
    ledger = runtime_of(mt).store
    assert isinstance(ledger, store.SqliteStore)
    return ledger._writer


async def run(mt: Meantime, count: int = 1) -> None:
    for _ in range(count):
        await (await mt.thread("a").start(Call(int, "1"))).wait()


def reader_of(path: Path) -> sqlite3.Connection:
    """It hinders checkpoints from here on."""
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM tasks").fetchone()
    return reader


def elsewhere(code: str, *words: object) -> str:
    """In another program: a file that is closed here loses the locks that SQLite has on it."""
    line = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(line, check=True, capture_output=True, text=True, timeout=LIMIT).stdout


EMPTY_WAL = """
import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone())
"""
PUT_BACK = "import os, sys; open(sys.argv[1], 'r+b').write(open(sys.argv[2], 'rb').read())"


async def test_what_a_failed_sync_dropped_of_a_checkpoint_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """SQLite takes pages for written that a checkpoint beside a reader has written and not synced."""
    path, before = tmp_path / "work.db", tmp_path / "before"
    monkeypatch.setattr(writer, "WAL_IDLE", 1 << 30)
    async with Meantime.open(path) as mt:
        await run(mt, 20)
        shutil.copy(path, before)
        reader = reader_of(path)
        await run(mt)
        monkeypatch.setattr(writer, "WAL_IDLE", 1)
        await run(mt)

        async def is_partly_in_the_database() -> bool:
            used, waiting = writer_of(mt)._mark.used_bytes() or (0, 0)
            return 0 < waiting < used

        await until_async(is_partly_in_the_database, "a part of the WAL is in the database")
        monkeypatch.setattr(writer, "WAL_IDLE", 1 << 30)
        reader.close()
        elsewhere(PUT_BACK, path, before)  # as a kernel that drops pages it could not write
        writer_of(mt)._unwritten = True
        await run(mt)
        assert not writer_of(mt)._unwritten
        kept = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        assert kept.execute("SELECT count(*) FROM tasks").fetchone() == (23,)
        assert kept.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        kept.close()


async def test_the_disk_has_it_that_a_ledger_is_open_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Otherwise a power cut leaves a lock that says `clean` beside a WAL: that looks like damage."""
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        await run(mt)
    on_disk: list[bool] = []

    def sync(descriptor: int) -> None:
        os.fsync(descriptor)
        on_disk.append(json.loads(os.pread(descriptor, 4096, 0))["clean"])

    monkeypatch.setattr(ledger_lock, "sync_file", sync)
    async with Meantime.open(path):
        assert on_disk[-1:] == [False]


async def test_a_copy_of_a_ledger_that_was_closed_beside_a_reader_opens(tmp_path: Path):
    path = tmp_path / "home" / "work.db"
    async with Meantime.open(path) as mt:
        await run(mt, 3)
        reader = reader_of(path)
    shutil.copytree(path.parent, tmp_path / "copy")
    reader.close()
    async with Meantime.open(tmp_path / "copy" / "work.db") as mt:
        assert len(await mt.list("all")) == 3


async def test_checkpoints_come_in_time_after_a_reader_that_hindered_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "work.db"
    monkeypatch.setattr(writer, "WAL_IDLE", 100_000)
    monkeypatch.setattr(writer, "WAL_AGAIN", 50_000)
    async with Meantime.open(path) as mt:
        await run(mt)
        reader = reader_of(path)
        await run(mt, 30)
        reader.close()
        assert writer_of(mt)._again_over > 400_000
        assert elsewhere(EMPTY_WAL, path) == "(0, 0, 0)\n"
        await run(mt)
        assert writer_of(mt)._again_over <= 250_000


async def test_a_checkpoint_that_found_no_room_is_tried_again_while_the_reserve_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Otherwise the WAL takes all of the reserve, and the database cannot grow."""
    monkeypatch.setattr(writer, "WAL_IDLE", 1)
    tries: list[int] = []
    async with Meantime.open(tmp_path / "work.db") as mt:

        def full() -> bool:
            tries.append((writer_of(mt)._mark.used_bytes() or (0, 0))[1])
            problem = sqlite3.OperationalError("database or disk is full")
            problem.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise problem

        writer_of(mt)._fill_database = full  # type: ignore[method-assign]
        await run(mt, 20)
    steps = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert steps
    assert all(writer.WAL_SOON < step < Reserve.SIZE / 4 for step in steps)


async def test_the_mark_of_a_wal_that_another_program_has_begun_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A power cut may leave an older mark, which would take that WAL for another ledger's."""
    path = tmp_path / "work.db"
    synced: list[int] = []
    monkeypatch.setattr(wal_mark, "sync_data", synced.append)
    async with Meantime.open(path) as mt:
        await run(mt, 3)
        synced.clear()
        await run(mt, 3)
        assert not synced, "a commit does not sync the mark"
        elsewhere(EMPTY_WAL, path)
        await run(mt, 3)
        assert synced == [writer_of(mt)._mark._fd], "once, for the WAL that was begun"
        monkeypatch.setattr(writer, "WAL_IDLE", 1)
        await run(mt, 3)
        assert len(synced) == 1, "our own checkpoints need no sync"


BEGUN = {"old": 7, "new": 9, "far": 1 << 30}
SALTS = {name: number.to_bytes(4, "big") + b"salt" for name, number in BEGUN.items()}


@pytest.mark.parametrize(
    ("header", "claimed", "frames", "taken"),
    [
        ("new", "old", ["new", "new", "old"], "new"),
        (
            "old",
            "new",
            ["old", "old"],
            "new",
        ),  # somebody has put back the WAL of a copy
        ("far", "old", ["far", "far", "old"], "far"),  # begun by another program
        ("old", "far", ["old", "old"], "old"),  # the mark may be the older one
        ("damaged", "old", ["new", "new", "old", "old"], "new"),
        ("damaged", "old", ["far", "far", "old", "old"], "old"),
        ("damaged", "", ["old", "old", "new", "new"], "new"),
    ],
)
def test_a_salvage_takes_the_newest_wal_that_belongs_to_the_ledger(
    header: str, claimed: str, frames: list[str], taken: str
):
    found = [wal_overlay.WalFrame(1, 1, SALTS[name], True, b"") for name in frames]
    named = {**SALTS, "damaged": b"????????", "": bytes(8)}
    assert wal_overlay._newest_salt(named[header], named[claimed], found) == SALTS[taken]


async def test_an_index_that_another_program_writes_just_now_says_nothing(tmp_path: Path):
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        await run(mt)
        index = wal_index.WalIndex(path)
        whole, kept = bytes(index._index), index._index
        for content, is_known in ((whole, True), (whole[:40] + b"!" + whole[41:], False)):
            index._index = content  # type: ignore[assignment]
            assert (index.end() is not None, index.used_bytes() is not None) == (is_known, is_known)
        with pytest.raises(OSError, match="the end of the WAL is not known"):  # the last one
            index.trim(f"{path}-wal")  # so a failed write is not said to be taken back
        index._index = kept
    index.close()


def test_a_ledger_without_a_wal_is_refused():
    with pytest.raises(sqlite3.OperationalError, match="its journal mode is memory, not wal"):
        connection.connect(Path(":memory:"))
