"""A ledger that was deleted: nobody goes on with an empty one as if there had been none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Call, LedgerDamaged, LedgerError, Meantime
from meantime.app.ledger_backup import back_up
from meantime.app.ledger_restore import restore

from .damaged import found, work

IDS = {"a-0", "a-1", "a-2"}


async def fill(ledger: Path) -> None:
    async with Meantime.open(ledger) as meantime:
        await start_some(meantime)


async def start_some(meantime: Meantime) -> None:
    for id in sorted(IDS):
        await (await meantime.thread("a").start(Call(work, 1), id=id)).wait()


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    asyncio.run(fill(path))
    return path


def test_a_ledger_that_was_deleted_is_refused_until_somebody_decides(ledger: Path) -> None:
    kept = ledger.read_bytes()
    ledger.unlink()
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match=r"is gone.*To begin anew, remove .*ledger\.db\.lock"):
            found(ledger)
        assert not ledger.exists()
    ledger.write_bytes(kept)
    assert found(ledger) == IDS


@pytest.mark.parametrize("way", ["salvage", "no lock"])
def test_one_can_begin_anew(ledger: Path, way: str) -> None:
    ledger.unlink()
    if way == "no lock":
        Path(f"{ledger}.lock").unlink()
        assert found(ledger) == set()
    assert found(ledger, salvage=True) == set()
    assert found(ledger) == set()


def test_a_backup_can_take_its_place(ledger: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    backup = tmp_path_factory.mktemp("backup") / "meantime.tar"
    back_up(ledger, backup)
    ledger.unlink()
    Path(f"{ledger}.mark").write_bytes(b"of the one that was here")
    restore(backup, ledger, is_home=True)
    assert found(ledger) == IDS


async def start_on(meantime: Meantime) -> None:
    """Until it is refused: the name of the WAL is looked up now and then."""
    while True:
        await meantime.thread("b").start(Call(work, 1))


async def deleted_under(ledger: Path, names: tuple[str, ...]) -> None:
    async with Meantime.open(ledger) as meantime:
        await start_some(meantime)
        for name in names:
            (ledger.parent / name).unlink()
        with pytest.raises(LedgerError, match="was removed or replaced"):
            await asyncio.wait_for(start_on(meantime), LIMIT)
        assert (await meantime.stats())["degraded"]
        with pytest.raises(LedgerError):
            await meantime.thread("b").start(Call(work, 1))


def test_what_was_deleted_under_its_owner_is_saved_and_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    asyncio.run(deleted_under(ledger, ("ledger.db", "ledger.db-wal", "ledger.db-shm")))
    for _ in range(2):
        with pytest.raises(LedgerDamaged, match=r"3 tasks and 3 notices"):
            found(ledger)
    assert found(ledger, salvage=True) == IDS


@pytest.mark.faults
def test_a_wal_that_was_deleted_under_its_owner_loses_nothing(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    asyncio.run(deleted_under(ledger, ("ledger.db-wal",)))
    assert found(ledger) >= IDS
