"""Schedules: an alarm is written with its schedule, comes once, and is told in one order with endings."""

from __future__ import annotations

from collections.abc import Sequence

from meantime.kernel.due_times import DueTime, Uptime
from meantime.kernel.limits import Retention
from meantime.kernel.notice_sources import SourceKind
from meantime.kernel.schedules import Schedule, ScheduleChange, ScheduleState, cancel, create, ring
from meantime.ports.store import CommitResult, Store

from .store_fixture import PARKS, Check, StoreFixture, ids, said, same

BOOT = Uptime("boot-1", 500.0)
S1, S2, S3 = "s_0000000001", "s_0000000002", "s_0000000003"  # ids as ours are
T1 = "t_0000000001"


def _at(id: str, at: float, thread: str = "a", tool_call_id: str | None = None) -> Schedule:
    due = DueTime(at)
    return Schedule(
        id=id, thread=thread, text=f"text of {id}", due=due, created_at=1_000.0, tool_call_id=tool_call_id
    )


def _delay(id: str, at: float, seconds: float, boot: str = BOOT.boot) -> Schedule:
    due = DueTime(at, boot, seconds)
    return Schedule(id=id, thread="a", text=f"text of {id}", due=due, created_at=1_000.0)


async def _add(store: Store, *schedules: Schedule) -> None:
    for schedule in schedules:
        same((await store.commit_schedule(create(schedule))).result, CommitResult.DONE, "a new one")


async def _ring(store: Store, schedule: Schedule, now: float) -> ScheduleChange:
    change = ring(schedule, now, BOOT)
    assert change is not None, f"{schedule.id} is not due"
    same((await store.commit_schedule(change)).result, CommitResult.DONE, "an occurrence")
    return change


async def an_alarm_is_written_with_its_schedule_and_told_as_an_ending_is(store: Store) -> None:
    bench = StoreFixture(store)
    schedule = _at(S1, 1_010.0)
    await _add(store, schedule)
    task = await bench.start(T1)
    rung = await _ring(store, schedule, 1_015.0)
    await bench.end(task)
    same(await store.schedule(S1), rung.schedule, "the schedule, afterwards")
    found = await bench.lease("turn")
    same(ids(found), [f"{S1}.1", f"{T1}.1"], "by the order of commits")
    alarm = found[0]
    same((alarm.kind, alarm.about, alarm.text), (SourceKind.ALARM, None, f"text of {S1}"), "the alarm")
    same(alarm.body is not None and alarm.body.late, 5.0, "how late it comes")
    same(list(await bench.give_back("turn")), ids(found), "it comes again with the same id")
    await bench.lease("two")
    entries = [said("one", f"{S1}.1")]
    settled = await bench.settle("two", f"{S1}.1", entries=entries)
    same((settled.told, settled.gone), ((f"{S1}.1",), ()), "what was settled")
    same(list(await store.told_by("two", [f"{S1}.1"], "a")), [f"{S1}.1"], "an ack that is sent again")
    same(await store.has_entry("a", f"{S1}.1"), True, "its entry")


async def an_occurrence_comes_once_whoever_is_first(store: Store) -> None:
    bench = StoreFixture(store)
    schedule = _at(S1, 1_010.0)
    await _add(store, schedule)
    change = ring(schedule, 1_015.0, BOOT)
    stopped = cancel(schedule, 1_015.0)
    assert change is not None
    assert stopped is not None
    results = [(await store.commit_schedule(one)).result for one in (change, change, stopped)]
    same(results, [CommitResult.DONE, CommitResult.CONFLICT, CommitResult.CONFLICT], "the first one counts")
    same(await bench.states(), {f"{S1}.1": "unread"}, "one notice")
    same(dict(await store.unread()), {"a": 1}, "what is unread")


async def a_cancelled_schedule_is_not_due_and_not_listed(store: Store) -> None:
    schedule, other = _at(S1, 1_010.0), _at(S2, 1_020.0)
    await _add(store, schedule, other)
    change = cancel(schedule, 1_005.0)
    assert change is not None
    await store.commit_schedule(change)
    same(await store.next_due(BOOT.boot), (1_020.0, None), "the next one")
    same([one.id for one in await _due(store, 9_999.0)], [S2], "those that are due")
    same([one.id for one in await store.schedules("a", 10)], [S2], "the list")
    same(dict(await store.pending_schedules()), {"a": 1}, "how many")
    found = await store.schedule(S1)
    same(found and found.state, ScheduleState.CANCELLED, "it is still known")


async def _due(store: Store, now: float, limit: int = 10) -> Sequence[Schedule]:
    due = await store.due_schedules(now, BOOT, limit)
    same(list(due.set_aside), [], "all can be read")
    return due.schedules


async def due_ones_are_found_by_both_clocks(store: Store) -> None:
    near, far = _at(S1, 1_010.0), _at("s_0000000009", 5_000.0)
    delay = _delay(S2, 9_000.0, 450.0)  # the wall clock was set back since
    await _add(store, far, near, delay)
    same(await store.next_due(BOOT.boot), (1_010.0, 450.0), "the next by each clock")
    due = await _due(store, 1_020.0)
    same([one.id for one in due], [S2, S1], "the latest first: 50 s and 10 s")
    same([one.id for one in await _due(store, 1_020.0, 1)], [S2], "at most so many")
    same([one.id for one in await store.schedules(None, 10)], [S1, far.id, S2], "the list, by the wall clock")
    same([one.id for one in await store.schedules("a", 1, 1)], [far.id], "a page of it")
    same(await store.schedules("b", 10), [], "another thread's")


async def after_another_boot_delays_go_by_the_wall_clock(store: Store) -> None:
    await _add(store, _delay(S1, 1_010.0, 450.0, "boot-0"), _delay(S2, 1_030.0, 520.0))
    same(await store.next_due(BOOT.boot), (None, 520.0), "what another boot counted is unknown")
    same(await store.leave_boot(BOOT.boot), 1, "how many were of another boot")
    same(await store.next_due(BOOT.boot), (1_010.0, 520.0), "the next by each clock")
    same([one.id for one in await _due(store, 1_020.0)], [S1], "what is due")
    same(await store.leave_boot(BOOT.boot), 0, "once")


async def a_tool_call_schedules_once(store: Store) -> None:
    await _add(store, _at(S1, 1_010.0, tool_call_id="call"), _at(S2, 1_010.0, "b", tool_call_id="call"))
    again = await store.commit_schedule(create(_at(S3, 1_010.0, tool_call_id="call")))
    same((again.result, again.existing), (CommitResult.SAME_CALL, S1), "the second of a thread")
    twice = await store.commit_schedule(create(_at(S1, 1_010.0)))
    same((twice.result, twice.existing), (CommitResult.SAME_ID, S1), "an id that is there")


async def a_failing_alarm_is_parked_and_comes_back(store: Store) -> None:
    bench = StoreFixture(store)
    schedule = _at(S1, 1_010.0)
    await _add(store, schedule)
    await _ring(store, schedule, 1_015.0)
    for _ in range(PARKS):
        await bench.lease("turn")
        await bench.fail("turn")
    same(await bench.states(), {f"{S1}.1": "parked"}, "after failed deliveries")
    same(await store.unpark("a", [f"{S1}.1"]), 1, "by its id")
    same(ids(await bench.lease("again")), [f"{S1}.1"], "it is told")


async def a_thread_with_nothing_but_reminders_is_known(store: Store) -> None:
    schedule = _at(S1, 1_010.0)
    await _add(store, schedule)
    same([one.thread for one in await store.owed(None, 10)], ["a"], "while it is pending")
    await _ring(store, schedule, 1_015.0)
    (owed,) = await store.owed("a", 10)
    same((owed.unread, owed.ended_at), (1, 1_015.0), "when it has come")
    (entry,) = await store.inbox("a", 1 << 62, 10)
    same((entry.kind, entry.task, entry.status), (SourceKind.ALARM, S1, None), "in its inbox")


async def what_is_over_is_forgotten_and_never_what_is_untold(store: Store) -> None:
    bench = StoreFixture(store)
    told, untold, pending, gone = (_at(f"s_000000000{n}", 1_010.0) for n in range(4))
    await _add(store, told, untold, pending, gone)
    await _ring(store, told, 1_011.0)
    await bench.tell()
    await _ring(store, untold, 1_012.0)
    stopped = cancel(gone, 1_013.0)
    assert stopped is not None
    await store.commit_schedule(stopped)
    await store.forget(Retention(history_seconds=100.0), 1_050.0)
    same([await store.schedule(one.id) is None for one in (told, gone)], [False, False], "of late")
    await store.forget(Retention(history_seconds=100.0), 9_999.0)
    left = [one.id for one in (told, untold, pending, gone) if await store.schedule(one.id)]
    same(left, [untold.id, pending.id], "what is left")
    same(await bench.states(), {f"{untold.id}.1": "unread"}, "the notices that are left")


CHECKS: tuple[Check, ...] = (
    an_alarm_is_written_with_its_schedule_and_told_as_an_ending_is,
    an_occurrence_comes_once_whoever_is_first,
    a_cancelled_schedule_is_not_due_and_not_listed,
    due_ones_are_found_by_both_clocks,
    after_another_boot_delays_go_by_the_wall_clock,
    a_tool_call_schedules_once,
    a_failing_alarm_is_parked_and_comes_back,
    a_thread_with_nothing_but_reminders_is_known,
    what_is_over_is_forgotten_and_never_what_is_untold,
)
