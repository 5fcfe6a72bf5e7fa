"""A damaged ledger's reminders: one that cannot be read stands in nobody's way, and a salvage brings back
what an alarm and its schedule know of each other."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.waiting import stays_async, until_async

from meantime import LedgerDamaged, Meantime, Thread
from meantime.app.ledger_audit import audit
from meantime.app.ledger_backup import back_up
from meantime.app.ledger_restore import restore
from meantime.kernel.due_times import Uptime
from meantime.ports.store import DueSchedules
from meantime.runtime.reminding import RETRY
from meantime.stores.sqlite.salvage import set_aside
from meantime.testing import FakeClock
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


async def until_unread(mt: Meantime, count: int, clock: FakeClock | None = None) -> None:
    """With a clock, time goes on meanwhile."""

    async def are_unread() -> bool:
        if clock is not None:
            await clock.advance(RETRY)
        return runtime_of(mt).waking.unread("a") == count

    await until_async(are_unread, f"{count} are unread", lambda: runtime_of(mt).waking.unread("a"))


async def texts(thread: Thread) -> list[str]:
    async with thread.turn() as turn:
        found = [notice.text for notice in turn.notices]
        await turn.ack()
    return found


async def fill(ledger: Path) -> FakeClock:
    """One reminder was told, one has come, two are still to come."""
    clock = FakeClock()
    async with Meantime.open(ledger, clock=clock) as mt:
        thread = mt.thread("a")
        for text, delay in (("told", 1), ("unread", 2), ("next", 100), ("last", 200)):
            await thread.remind(text, delay=delay)
        for at in (1, 2):
            await clock.advance(1.0)
            await until_unread(mt, 1)
            if at == 1:
                assert await texts(thread) == ["told"]
    return clock


def change(ledger: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(ledger)) as db:
        assert db.execute(statement, values).rowcount == 1
        db.commit()


def findings(ledger: Path) -> list[str]:
    return [found.what for found in audit(ledger, owned=False, now=FakeClock().now()).findings if found.wrong]


@pytest.mark.parametrize("body", [b"\x00\xff", b"{}", 7])
async def test_one_that_cannot_be_read_is_set_aside_and_named(tmp_path: Path, body: object) -> None:
    ledger = tmp_path / "work.db"
    clock = await fill(ledger)
    change(ledger, "UPDATE schedules SET body = ? WHERE at = (SELECT max(at) - 100 FROM schedules)", body)
    assert findings(ledger) == ["1 × a record that cannot be read"]
    async with Meantime.open(ledger, clock=clock) as mt:
        await clock.advance(300.0)
        await until_unread(mt, 2)
        assert await texts(mt.thread("a")) == ["unread", "last"]
        assert (await mt.stats())["unreadable"] == 1
        await until_async(lambda: len(clock.due_in) == 1, "only upkeep is due: nothing is due for ever")


async def test_one_that_is_set_aside_is_no_longer_pending(tmp_path: Path) -> None:
    ledger = tmp_path / "work.db"
    clock = await fill(ledger)
    async with Meantime.open(ledger, clock=clock) as mt:
        change(ledger, "UPDATE schedules SET body = '{}' WHERE at = (SELECT max(at) - 100 FROM schedules)")
        await clock.advance(300.0)
        await until_unread(mt, 2)
        assert runtime_of(mt).reminding.pending_of("a") == 0
        assert runtime_of(mt).reminding.pending == 0


def count_looks(mt: Meantime, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When the store was asked for what is due, from now on."""
    store, looks = runtime_of(mt).record.store, list[float]()
    due_schedules = store.due_schedules

    async def counted(now: float, uptime: Uptime, limit: int) -> DueSchedules:
        looks.append(now)
        return await due_schedules(now, uptime, limit)

    monkeypatch.setattr(store, "due_schedules", counted)
    return looks


async def stays_still(looks: list[float]) -> None:
    """While time stands still. Without a pause there would be hundreds of looks."""
    before = len(looks)
    await stays_async(lambda: len(looks) < before + 10, "nothing is looked for", 0.2)


async def test_one_whose_version_contradicts_its_row_is_not_tried_without_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "work.db"
    clock = await fill(ledger)
    next_one = "(SELECT max(at) - 100 FROM schedules)"
    async with Meantime.open(ledger, clock=clock) as mt:
        change(ledger, f"UPDATE schedules SET version = version + 1 WHERE at = {next_one}")
        looks = count_looks(mt, monkeypatch)
        await clock.advance(300.0)
        await until_unread(mt, 2, clock)
        assert await texts(mt.thread("a")) == ["unread", "last"]
        await stays_still(looks)


async def test_a_delay_that_another_boot_moved_to_the_wall_clock_is_not_tried_without_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, clock = tmp_path / "work.db", FakeClock()
    async with Meantime.open(ledger, clock=clock) as mt:
        await mt.thread("a").remind("later", delay=100)
    first, clock.boot = clock.boot, "boot-2"
    async with Meantime.open(ledger, clock=clock):
        pass
    clock.boot = first
    async with Meantime.open(ledger, clock=clock) as mt:
        looks = count_looks(mt, monkeypatch)
        clock.jump(1_000.0)  # due by the wall clock, and not by that of its boot
        await clock.advance(RETRY)
        await until_async(lambda: looks, "it is looked for")
        await stays_still(looks)
        await until_unread(mt, 1, clock)


async def test_columns_that_contradict_their_row_are_found(tmp_path: Path) -> None:
    ledger = tmp_path / "work.db"
    await fill(ledger)
    assert findings(ledger) == []
    change(ledger, "UPDATE schedules SET due = due + 1 WHERE at = (SELECT max(at) FROM schedules)")
    assert findings(ledger) == ["1 × a record that cannot be read"]


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("DELETE FROM notices WHERE state = 'unread'", "1 × a reminder that has come without a notice"),
        (
            "DELETE FROM schedules WHERE seq = (SELECT source FROM notices WHERE state = 'unread')",
            "1 × a notice without its reminder",
        ),
    ],
    ids=["the alarm is gone", "the schedule is gone"],
)
async def test_a_salvage_brings_back_what_came_and_what_is_to_come(
    tmp_path: Path, statement: str, what: str
) -> None:
    ledger = tmp_path / "work.db"
    clock = await fill(ledger)
    change(ledger, statement)
    assert findings(ledger) == [what]
    set_aside(ledger)  # as an owner does that finds damage
    with pytest.raises(LedgerDamaged):
        await Meantime.open(ledger, clock=clock)
    async with Meantime.open(ledger, clock=clock, salvage=True) as mt:
        assert await texts(mt.thread("a")) == ["unread"]
        assert [one.text for one in await mt.thread("a").schedules()] == ["next", "last"]
    assert findings(ledger) == []


async def test_a_backup_has_the_reminders(tmp_path: Path) -> None:
    ledger = tmp_path / "work.db"
    clock = await fill(ledger)
    back_up(ledger, tmp_path / "copy.tar")
    (tmp_path / "other").mkdir()
    restore(tmp_path / "copy.tar", tmp_path / "other" / "work.db", is_home=False)
    async with Meantime.open(tmp_path / "other" / "work.db", clock=clock) as mt:
        assert [one.text for one in await mt.thread("a").schedules()] == ["next", "last"]


async def test_an_audit_names_reminders_that_are_due(tmp_path: Path) -> None:
    ledger = tmp_path / "work.db"
    clock = await fill(ledger)
    found = {
        owned: [one.what for one in audit(ledger, owned=owned, now=clock.now() + 300).findings]
        for owned in (False, True)
    }
    assert "2 × a reminder that is due and did not come" in found[False]
    assert not any("reminder" in what for what in found[True])  # delays go by another clock
