"""A conversation is reminded at a time: once, over restarts, sleeps of the machine and jumps of its clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, until_async

from meantime import (
    Call,
    Duplicate,
    InvalidInput,
    LimitReached,
    Limits,
    Meantime,
    NotFound,
    Notice,
    Refused,
    Settings,
    Thread,
)
from meantime.kernel.due_times import FARTHEST
from meantime.runtime.due_alarm import AT_ONCE
from meantime.stores.sqlite.writer import Writer
from meantime.surfaces.http.notice_encoding import wire_notice
from meantime.testing import FakeClock
from meantime.testing.fake_clock import FakeAlarm
from runtimes import runtime_of

pytestmark = pytest.mark.anyio
HOUR = 3_600.0
ROUNDS = 60  # of the reconciler, which come anyway
YEAR = 365 * 86_400.0


async def told(thread: Thread) -> list[Notice]:
    async with thread.turn() as turn:
        found = list(turn.notices)
        await turn.ack()
    return found


async def texts(thread: Thread) -> list[str]:
    return [notice.text for notice in await told(thread)]


async def come(thread: Thread, count: int) -> list[Notice]:
    """The next so many, however many turns they take; never more."""
    found: list[Notice] = []

    async def all_came() -> bool:
        found.extend(await told(thread))
        return len(found) >= count

    await until_async(all_came, f"{count} have come", lambda: found)
    assert len(found) == count
    return found


async def test_a_reminder_comes_once_at_its_time(thread: Thread, clock: FakeClock) -> None:
    schedule = await thread.remind("look at the deploy", delay="20m")
    assert schedule.due_at == clock.now() + 1_200.0
    await clock.advance(1_199.0)
    assert await texts(thread) == []
    wakes = aiter(thread.wakeups())
    await clock.advance(1.0)
    async with asyncio.timeout(LIMIT):
        await anext(wakes)
    (notice,) = await told(thread)
    assert (notice.kind, notice.id, notice.text) == ("alarm", f"{schedule.id}.1", "look at the deploy")
    await clock.advance(HOUR)
    assert await texts(thread) == []


async def test_its_message_is_in_the_frame_of_all_notices(thread: Thread, clock: FakeClock) -> None:
    schedule = await thread.remind("stand up", delay=1)
    long = await thread.remind("first line\n" + "a long text " * 20, delay=2)
    await clock.advance(2.0)
    short, other = [notice.message().text for notice in await come(thread, 2)]
    assert short == (
        f'<task-notification id="{schedule.id}.1"/>\n'
        'Reminder "stand up" is due. Automatic event; no human approved anything.'
    )
    assert f'<task-notification id="{long.id}.1"/>' in other
    assert other.count("a long text") > 20  # the whole text is in a block of its own


async def test_a_time_is_of_the_wall_clock(thread: Thread, clock: FakeClock) -> None:
    at = datetime.fromtimestamp(clock.now() + HOUR, UTC)
    await thread.remind("by a datetime", at=at)
    await thread.remind("by a text", at=(at + timedelta(seconds=1)).isoformat())
    await thread.remind("by seconds", at=at.timestamp() + 2)
    await thread.remind("by a timedelta", delay=timedelta(seconds=3_603))
    assert [one.text for one in await thread.schedules()] == [
        "by a datetime", "by a text", "by seconds", "by a timedelta",
    ]  # fmt: skip
    await clock.advance(HOUR + 3)
    assert [one.text for one in await come(thread, 4)] == [
        "by a datetime",
        "by a text",
        "by seconds",
        "by a timedelta",
    ]


async def test_after_a_jump_of_the_wall_clock_times_are_read_again(thread: Thread, clock: FakeClock) -> None:
    await thread.remind("at", at=clock.now() + HOUR)
    await thread.remind("delay", delay=600)
    clock.jump(YEAR)
    await clock.advance_to_alarm(5.0)  # a reconciler's round
    (notice,) = await come(thread, 1)
    assert notice.text == "at"
    assert notice.body is not None
    assert notice.body.late == pytest.approx(YEAR - HOUR, abs=10)
    assert "late" in notice.message().text
    clock.jump(-2 * YEAR)
    await clock.advance(590.0)
    assert await texts(thread) == []
    await clock.advance(5.0)
    (notice,) = await come(thread, 1)
    assert (notice.text, notice.body and notice.body.late < 1.0) == ("delay", True)
    assert wire_notice(notice).late == 0


async def test_a_clock_that_is_set_back_postpones_a_time_and_no_delay(
    thread: Thread, clock: FakeClock
) -> None:
    await thread.remind("at", at=clock.now() + 60)
    await thread.remind("delay", delay=61)
    clock.jump(-600.0)
    await clock.advance(62.0)
    assert [one.text for one in await come(thread, 1)] == ["delay"]
    await clock.advance(600.0)
    assert [one.text for one in await come(thread, 1)] == ["at"]


async def test_a_machine_that_slept_tells_once_and_says_how_late(thread: Thread, clock: FakeClock) -> None:
    await thread.remind("delay", delay=60)
    await thread.remind("at", at=clock.now() + 61)
    clock.sleep(HOUR)
    await clock.advance_to_alarm(5.0)  # a reconciler's round
    found = await come(thread, 2)
    assert [notice.text for notice in found] == ["delay", "at"]
    assert [round(notice.body.late / 60) for notice in found if notice.body] == [59, 59]
    assert [round(wire_notice(notice).late / 60) for notice in found] == [59, 59]
    await clock.advance(HOUR)
    assert await texts(thread) == []


@pytest.mark.parametrize("boot", ["boot-1", "boot-2"], ids=["the same boot", "another boot"])
async def test_a_restart_keeps_reminders_and_tells_late_ones_once(tmp_path: Path, boot: str) -> None:
    clock = FakeClock()
    async with Meantime.open(tmp_path / "work.db", clock=clock) as mt:
        thread = mt.thread("a")
        await thread.remind("missed", delay=60)
        await thread.remind("missed, at", at=clock.now() + 61)
        await thread.remind("to come", delay=HOUR)
    later = FakeClock(clock.now() + 600)
    later.boot = boot
    if boot == "boot-1":
        later.sleep(600)
        later.jump(-600)
    for _ in range(2):  # a second one finds nothing new
        async with Meantime.open(tmp_path / "work.db", clock=later) as mt:
            await later.until(lambda mt=mt: runtime_of(mt).waking.unread("a") == 2)
            await later.settle()
            found = await mt.notices("unread")
            assert [notice.text for notice in found] == ["missed", "missed, at"]
            assert [notice.body.late for notice in found if notice.body] == [540.0, 539.0]
            assert [one.text for one in await mt.thread("a").schedules()] == ["to come"]
    async with Meantime.open(tmp_path / "work.db", clock=later) as mt:
        await later.advance(HOUR - 600)
        await later.until(lambda: runtime_of(mt).waking.unread("a") == 3)
        assert (await texts(mt.thread("a")))[-1] == "to come"


async def test_reminders_are_listed_and_cancelled(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    first = await thread.remind("first", delay=20)
    second = await thread.remind("second", delay=10)
    other = await mt.thread("other").remind("other", delay=15)
    assert [one.id for one in await thread.schedules()] == [second.id, first.id]
    gone = await thread.cancel_schedule(second)
    assert (gone.id, gone.state) == (second.id, "cancelled")
    assert (await thread.cancel_schedule(second.id)).state == "cancelled"  # asking twice is harmless
    assert [one.id for one in await thread.schedules()] == [first.id]
    for unknown in (other.id, "s_0000000000", "t_0000000000"):
        with pytest.raises(NotFound):
            await thread.cancel_schedule(unknown)
    await clock.advance(30.0)
    assert [one.text for one in await come(thread, 1)] == ["first"]
    with pytest.raises(Refused, match="has come already"):
        await thread.cancel_schedule(first)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "at= or delay="),
        ({"at": 1e9, "delay": 1}, "at= or delay="),
        ({"delay": -1}, "delay=-1"),
        ({"delay": float("nan")}, "nan"),
        ({"delay": float("inf")}, "inf"),
        ({"delay": True}, "delay=True"),
        ({"delay": "soon"}, "not a duration"),
        ({"delay": FARTHEST + 1}, "ten years"),
        ({"delay": 2**70}, "ten years"),
        ({"at": 1_000.0}, "at=1970-01-01T00:16:40.000Z is in the past."),
        ({"at": float("nan")}, "nan"),
        ({"at": 1_700_000_000.0 + FARTHEST + 60}, "too far"),
        ({"at": datetime(2030, 1, 1)}, "no time zone"),
        ({"at": "2030-01-01T10:00"}, "no time zone"),
        ({"at": "tomorrow"}, "not a time"),
        ({"at": datetime.max.replace(tzinfo=UTC, microsecond=0)}, "at=9999-12-31T23:59:59.000Z is too far"),
        ({"at": 9e11}, "at=900000000000.0 is too far"),  # of a year that no calendar has
    ],
)
async def test_times_that_make_no_sense_are_refused(
    thread: Thread, given: dict[str, object], problem: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await thread.remind("text", **given)  # type: ignore[arg-type]
    assert problem in f"{refused.value} {refused.value.hint}"
    assert await thread.schedules() == []


async def test_a_time_that_has_just_passed_comes_at_once(thread: Thread, clock: FakeClock) -> None:
    await thread.remind("now", at=clock.now() - 30)
    await thread.remind("at once", delay=0)
    assert sorted(one.text for one in await come(thread, 2)) == ["at once", "now"]


@pytest.mark.parametrize("text", ["", " \n", "x" * 4_001, "\ud800", 7])
async def test_texts_that_cannot_be_told_are_refused(thread: Thread, text: str) -> None:
    with pytest.raises(InvalidInput):
        await thread.remind(text, delay=1)


async def test_a_tool_call_has_one_reminder(mt: Meantime, thread: Thread) -> None:
    first = await thread.remind("text", delay=60, tool_call_id="call-1")
    with pytest.raises(Duplicate) as refused:
        await thread.remind("text", delay=60, tool_call_id="call-1")
    assert refused.value.existing == first.id
    assert refused.value.hint == f"The existing reminder is {first.id}."
    await mt.thread("other").remind("text", delay=60, tool_call_id="call-1")
    assert len(await thread.schedules()) == 1


async def test_limits_of_a_thread_and_of_all_are_said(ledger: str) -> None:
    limits = Limits(reminders=3, reminders_per_thread=2)
    async with Meantime.open(ledger, settings=Settings(limits=limits)) as mt:
        thread = mt.thread("a")
        first = await thread.remind("one", delay=60)
        await thread.remind("two", delay=60)
        with pytest.raises(LimitReached, match="2 of at most 2 reminders are pending in this thread"):
            await thread.remind("three", delay=60)
        await mt.thread("b").remind("one", delay=60)
        with pytest.raises(LimitReached, match="3 of at most 3 reminders are pending in all"):
            await mt.thread("c").remind("one", delay=60)
        await thread.cancel_schedule(first)
        await mt.thread("c").remind("one", delay=60)
        assert (await mt.stats())["reminders"] == 3


@pytest.mark.in_process("it counts the alarms of the owner; workers have alarms of their own")
async def test_reminders_cost_one_alarm_however_many(tmp_path: Path) -> None:
    clock = FakeClock()
    async with Meantime.open(":memory:", clock=clock) as mt:
        await clock.until(lambda: clock.due_in == [5.0])  # the reconciler's
        for number in range(200):
            await mt.thread("a").remind(f"{number}", delay=HOUR + number)
            await mt.thread("a").remind(f"{number}", at=clock.now() + HOUR + number)
        assert clock.due_in == [5.0, HOUR]
        await clock.advance(600.0)
        assert clock.due_in == [5.0, HOUR - 600.0]


@pytest.mark.in_process("it counts the alarms of the owner; workers have alarms of their own")
async def test_an_idle_owner_wakes_up_as_often_with_reminders_as_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each alarm and each write is a wake-up: there are the reconciler's rounds, and no more."""
    writes = 0
    submit = Writer.submit

    def counted(self: Writer, *args: Any, **options: Any) -> Any:
        nonlocal writes
        writes += 1
        return submit(self, *args, **options)

    async def woken(reminders: int) -> tuple[int, int]:
        clock, alarms = FakeClock(), 0
        async with Meantime.open(tmp_path / f"{reminders}.db", clock=clock) as mt:
            await clock.until(lambda: 5.0 in clock.due_in)
            threads = [mt.thread(f"t{n % 10}") for n in range(reminders)]
            await asyncio.gather(*(one.remind("far", delay=10 * HOUR) for one in threads))
            call_later, before = clock.call_later, writes

            def set_alarm(seconds: float, callback: Callable[[], object]) -> FakeAlarm:
                nonlocal alarms
                alarms += 1
                return call_later(seconds, callback)

            monkeypatch.setattr(clock, "call_later", set_alarm)
            for _ in range(ROUNDS):
                await clock.advance_to_alarm(5.0)
            await clock.until(lambda: 5.0 in clock.due_in)
            return alarms, writes - before

    monkeypatch.setattr(Writer, "submit", counted)
    without = await woken(0)
    assert without[0] == ROUNDS
    assert await woken(1_000) == without


MANY_AT_ONCE = [
    ("memory", 500),
    ("sqlite", 500),
    pytest.param("memory", 10_000, marks=pytest.mark.breadth),
    pytest.param("sqlite", 10_000, marks=pytest.mark.breadth),
]


@pytest.mark.parametrize(("store", "many"), MANY_AT_ONCE)
async def test_many_that_are_due_at_once_do_not_hold_up_the_loop(
    tmp_path: Path, store: str, many: int
) -> None:
    """Others have their turn in between: in one turn of the loop a few are told."""
    clock = FakeClock()
    ledger = ":memory:" if store == "memory" else tmp_path / "work.db"
    settings = Settings(limits=Limits(reminders_per_thread=-1))
    async with Meantime.open(ledger, clock=clock, settings=settings) as mt:
        thread, waking = mt.thread("a"), runtime_of(mt).waking
        await asyncio.gather(*(thread.remind(f"{n}", delay=60 + n / many) for n in range(many)))
        await clock.advance(59.0)
        clock.sleep(2.0)
        runtime_of(mt).reminding.look_at_clocks()
        turns: list[int] = []
        async with asyncio.timeout(LIMIT):
            while (before := waking.unread("a")) < many:
                await asyncio.sleep(0)
                turns.append(waking.unread("a") - before)
        assert sum(turns) == many
        assert max(turns) <= AT_ONCE
        found: list[str] = []
        while group := await texts(thread):
            found += group
        assert found == [f"{n}" for n in range(many)]  # each once, in the order of their times
        assert await thread.schedules() == []


@pytest.mark.breadth
async def test_a_restart_with_a_thousand_due_reminders_tells_each_once(tmp_path: Path) -> None:
    many, clock = 1_000, FakeClock()
    async with Meantime.open(tmp_path / "work.db", clock=clock) as mt:
        await asyncio.gather(*(mt.thread(f"t{n % 10}").remind(f"{n}", delay=60) for n in range(many)))
    later = FakeClock(clock.now() + HOUR)
    later.boot = "boot-2"
    async with Meantime.open(tmp_path / "work.db", clock=later) as mt:
        await later.until(lambda: runtime_of(mt).reminding.pending == 0)
        found = [text for n in range(10) for text in await texts(mt.thread(f"t{n}"))]
        assert sorted(found) == sorted(f"{n}" for n in range(many))


@pytest.mark.breadth
async def test_alarms_count_in_the_wake_budget_as_started_work_does(thread: Thread, mt: Meantime) -> None:
    """A conversation that reminds itself each time that it is woken is slowed down."""
    if not hasattr(mt._runtime, "waking"):
        pytest.skip("the budget is the owner's")
    waking = runtime_of(mt).waking
    await thread.remind("again", delay=0)
    wakes = aiter(thread.wakeups())
    async with asyncio.timeout(LIMIT):
        for _ in range(waking.wakes.budget.rounds):
            await anext(wakes)
            await told(thread)
            await thread.remind("again", delay=0)
    assert waking.rests(thread.id) > 0


async def test_the_status_of_a_turn_counts_them(thread: Thread, clock: FakeClock) -> None:
    await thread.remind("soon", delay=1)
    await thread.remind("late", delay=HOUR)
    assert "- reminders to come: 2" in await thread.reminder()
    await clock.advance(1.0)
    await anext(aiter(thread.wakeups()))
    status = await thread.reminder()
    assert "- reminders that are due, not yet told: 1" in status
    assert "- reminders to come: 1" in status


async def test_reminders_and_endings_are_told_in_one_order(thread: Thread, clock: FakeClock) -> None:
    await thread.remind("first", delay=1)
    await clock.advance(1.0)
    wakes = aiter(thread.wakeups())
    async with asyncio.timeout(LIMIT):
        await anext(wakes)
    handle = await thread.start(Call(int))
    await handle.wait()
    await thread.remind("third", delay=0)
    numbers = {notice.kind: notice.number for notice in await come(thread, 3)}
    assert numbers == {"alarm": 3, "ending": 2}
