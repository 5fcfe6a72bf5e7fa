"""The audit: an account of every notice, and every kind of contradiction is found."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from meantime import Call, Meantime, Settings, Shell
from meantime.app.ledger_audit import CONTRADICTIONS, Audit, audit
from meantime.kernel.errors import LedgerError, LedgerTooNew
from meantime.runners.shell.provenance import this_boot
from meantime.runners.shell.shim import cells

pytestmark = pytest.mark.anyio
HOUR = 3600.0


def say(words: str) -> str:
    return words


@pytest.fixture
async def ledger(tmp_path: Path) -> Path:
    """Six ended tasks: one told, one leased, one parked, one muted, two unread."""
    path = tmp_path / "work.db"
    async with Meantime.open(path, settings=Settings(parks_after=1)) as mt:
        told, failing, other = mt.thread("told"), mt.thread("failing"), mt.thread("other")
        for thread in (told, failing, other, other):
            await (await thread.start(Call(say, "x"))).wait()
        await (await other.start(Call(say, "quiet"), notify=False)).wait()
        async with told.turn() as turn:
            await turn.ack()
        with pytest.raises(ZeroDivisionError):
            async with failing.turn():
                raise ZeroDivisionError
        await (await mt.thread("leasing").start(Call(say, "x"))).wait()
    with sqlite3.connect(path) as db:  # as a process that is killed in a turn leaves it
        db.execute("UPDATE notices SET state = 'leased', turn = 'gone' WHERE thread = 'leasing'")
    db.close()
    return path


def looked(path: Path, later: float = 0.0, *, owned: bool = False) -> Audit:
    return audit(path, owned=owned, now=time.time() + later)


def texts(found: Audit) -> list[str]:
    return [finding.what.partition(";")[0] for finding in found.findings]


async def test_every_notice_is_accounted_for(ledger: Path) -> None:
    before = ledger.read_bytes()
    found = looked(ledger)
    counts = {one.state: one.how_many for one in found.notices}
    assert counts == {"leased": 1, "muted": 1, "parked": 1, "told": 1, "unread": 2}
    assert found.tasks == {"completed": 6}
    assert texts(found) == ["1 × parked after failed deliveries", "1 × leased by a turn that is gone"]
    assert not found.is_clean  # somebody must look after the parked one
    assert ledger.read_bytes() == before
    assert {path.name for path in ledger.parent.iterdir()} == {"work.db", "work.db.lock"}


async def test_parked_because_nobody_asks_is_a_remark(ledger: Path) -> None:
    """After failed deliveries somebody must mend something; here nobody has to."""
    with sqlite3.connect(ledger) as db:
        db.execute("UPDATE notices SET parked_for = 'unclaimed' WHERE state = 'parked'")
    db.close()
    found = looked(ledger)
    assert "1 × parked, as nobody asks for them" in texts(found)
    assert found.is_clean


async def test_what_waits_for_long_is_said(ledger: Path) -> None:
    with sqlite3.connect(ledger) as db:
        db.execute(
            "UPDATE notices SET state = 'told', told_at = 1, parked_for = NULL WHERE thread = 'failing'"
        )
    db.close()
    found = looked(ledger, HOUR + 5, owned=True)
    assert texts(found) == ["2 × unread for long", "1 × leased for more than an hour"]
    assert found.findings[0].which == ("thread other",)
    assert "1h 0m" in found.findings[0].what
    assert found.is_clean
    (unread,) = [one for one in found.notices if one.state == "unread"]
    assert HOUR <= unread.oldest < HOUR + 600


@pytest.mark.parametrize(
    ("what", "damage"),
    [
        ("ended without a notice", "DELETE FROM notices WHERE thread = 'told'"),
        (
            "an earlier run ended without a notice",
            "INSERT INTO runs SELECT id, 9, body FROM tasks WHERE thread = 'told'",
        ),
        ("a notice without its task", "DELETE FROM tasks WHERE thread = 'told'"),
        ("a notice of a run that has not ended", "UPDATE notices SET run = 2 WHERE thread = 'told'"),
        (
            "a notice with a number that its thread never gave",
            "UPDATE threads SET ended = 0 WHERE id = 'told'",
        ),
    ],
)
async def test_contradictions_are_found(ledger: Path, what: str, damage: str) -> None:
    assert what in CONTRADICTIONS
    with sqlite3.connect(ledger) as db:
        assert db.execute(damage).rowcount == 1
    db.close()
    found = looked(ledger)
    (finding,) = [one for one in found.findings if what in one.what]
    assert finding.wrong
    assert finding.what.startswith("1 × ")
    assert len(finding.which) == 1


async def test_a_running_command_beside_its_owner(tmp_path: Path) -> None:
    path, go = tmp_path / "work.db", tmp_path / "go"
    async with Meantime.open(path) as mt:
        task = await mt.thread("t").start(Shell(f"echo here; while [ ! -e {go} ]; do sleep 0.02; done"))
        async for _ in task.log.follow():
            break
        assert looked(path, owned=True).findings == ()
        later = looked(path, HOUR, owned=True)  # it lives, but has not been heard of
        assert texts(later) == ["1 × silent for more than 10 minutes"]
        assert later.findings[0].which[0].startswith(f"{task.id} (1h 0m")
        assert later.is_clean
        go.touch()
        await task.wait()
        assert looked(path, HOUR, owned=True).tasks == {"completed": 1}


async def test_running_where_nothing_runs(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        await mt.thread("t").start(Shell(f"while [ ! -e {tmp_path / 'go'} ]; do sleep 0.02; done"))
    assert "nothing runs" not in str(looked(path, HOUR).findings)  # it goes on without an owner
    (tmp_path / "go").touch()
    states = list(Path(f"{path}.commands").glob("*.state"))
    for state in states:
        state.rename(state.with_suffix(".aside"))
    assert len(states) == 1
    alone, owned = looked(path, HOUR), looked(path, HOUR, owned=True)
    assert "1 × running, but nothing runs" in texts(alone)
    assert "1 × running, but nothing runs" in texts(owned)
    assert (alone.is_clean, owned.is_clean) == (True, False)
    for state in states:
        state.with_suffix(".aside").rename(state)
    async with Meantime.open(path) as mt:  # it is found again, and nothing is left running
        (task,) = await mt.list()
        await mt.thread("t").wait(task, timeout=LIMIT)


async def test_nothing_runs_of_a_command_that_began_before_the_machine_restarted(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        await mt.thread("t").start(Shell(f"while [ ! -e {tmp_path / 'go'} ]; do sleep 0.02; done"))
    (state,) = Path(f"{path}.commands").glob("*.state")
    with state.open("r+b") as file:  # the shim lives, as one with its pid and start time may after a restart
        file.seek(cells.BOOT * 8)
        file.write((this_boot() ^ 1).to_bytes(8, sys.byteorder))
    found = looked(path, HOUR)
    (tmp_path / "go").touch()
    assert "1 × running, but nothing runs" in texts(found)


async def test_a_function_whose_process_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with Meantime.open(path) as mt:
        handle = await mt.thread("t").start(Call(asyncio.Event().wait))
        assert "left running" not in str(looked(path, owned=True).findings)
        found = looked(path, owned=False)
        assert texts(found) == ["1 × left running"]
        assert found.findings[0].which == (handle.id,)


async def test_only_ledgers_that_we_know(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    with pytest.raises(LedgerError, match="There is no"):
        looked(path)
    path.write_bytes(b"not a database" * 400)
    with pytest.raises(LedgerError, match="cannot be read"):
        looked(path)
    path.unlink()
    async with Meantime.open(path):
        pass
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 999")
    db.close()
    with pytest.raises(LedgerTooNew, match="schema 999"):
        looked(path)
