"""Notices that are not endings: written with their task, told in one order with endings, kept in bounds."""

from __future__ import annotations

from meantime.kernel.change import Change, notify, notify_waiting
from meantime.kernel.event_notices import NoticeRate, one
from meantime.kernel.limits import Retention
from meantime.kernel.model import Task
from meantime.kernel.notice_sources import SourceKind
from meantime.kernel.notices import NoticeState
from meantime.ports.store import CommitResult, Store

from .store_fixture import PARKS, Check, StoreFixture, ids, said, same

EACH = NoticeRate(seconds=0.0, per_minute=1_000_000)
RARELY = NoticeRate(seconds=3_600.0, per_minute=1)
T1, T2 = "t_0000000001", "t_0000000002"  # ids as ours are: those of their events have three parts


async def _tell(bench: StoreFixture, task: Task, text: str, rate: NoticeRate = EACH) -> Task:
    change = notify(task, one(text), bench.tick(), rate, joins=True)
    await bench.write(change)
    return change.task


async def events_and_endings_are_told_in_one_order(store: Store) -> None:
    bench = StoreFixture(store)
    first, second = await bench.start(T1), await bench.start(T2)
    first = await _tell(bench, first, "one")
    await bench.end(second)
    await _tell(bench, first, "two")
    found = await bench.lease("turn")
    same(ids(found), [f"{T1}.1.1", f"{T2}.1", f"{T1}.1.2"], "by the order of commits")
    same([notice.number for notice in found], [1, 2, 3], "one row of numbers")
    kinds = [SourceKind.EVENT, SourceKind.ENDING, SourceKind.EVENT]
    same([notice.kind for notice in found], kinds, "the kinds")
    same([found[0].text, found[2].text], ["one", "two"], "what they say")
    same(found[0].task.status, "running", "the task of an event, as it is now")
    same(await bench.states(), dict.fromkeys(ids(found), "leased"), "the states")


async def an_event_is_leased_settled_and_given_back_as_an_ending_is(store: Store) -> None:
    bench = StoreFixture(store)
    task = await _tell(bench, await bench.start(T1), "one")
    event = f"{T1}.1.1"
    same(dict(await store.unread()), {"a": 1}, "what is unread")
    await bench.lease("one")
    same(list(await bench.give_back("one")), [event], "it comes again with the same id")
    await bench.lease("two")
    settled = await bench.settle("two", event, entries=[said("one", event)])
    same((settled.told, settled.gone), ((event,), ()), "what was settled")
    same(list(await store.told_by("two", [event], "a")), [event], "an ack that is sent again")
    same(list(await store.told_by("two", [f"{T1}.1"], "a")), [], "its ending is another notice")
    same(await store.has_entry("a", event), True, "its entry")
    await bench.end(task)
    same(ids(await bench.lease("three")), [f"{T1}.1"], "the ending is told by itself")


async def a_failing_event_is_parked_and_comes_back(store: Store) -> None:
    bench = StoreFixture(store)
    await _tell(bench, await bench.start(T1), "one")
    for _ in range(PARKS):
        await bench.lease("turn")
        await bench.fail("turn")
    same(await bench.states(), {f"{T1}.1.1": "parked"}, "after failed deliveries")
    same(await store.unpark("b", [f"{T1}.1.1"]), 0, "another thread's is left alone")
    same(await store.unpark("a", [f"{T1}.1.1"]), 1, "by its id")
    same(ids(await bench.lease("again")), [f"{T1}.1.1"], "it is told")


async def an_event_joins_the_last_one_until_that_is_leased(store: Store) -> None:
    bench = StoreFixture(store)
    task = await _tell(bench, await bench.start(T1), "one", RARELY)
    task = await _tell(bench, task, "two", RARELY)
    task = await _tell(bench, task, "three", RARELY)
    same(dict(await store.unread()), {"a": 1}, "one notice for all")
    (notice,) = await bench.lease("turn")
    assert notice.body is not None
    told = (notice.id, notice.body.count, notice.body.first, notice.text)
    same(told, (f"{T1}.1.1", 3, "one", "three"), "what it stands for")
    late = notify(task, one("four"), bench.tick(), RARELY, joins=True)
    same((await store.commit(late)).result, CommitResult.LEASED, "a leased notice keeps its words")
    same((await store.load(T1)) == task, True, "and nothing else was written")
    (again,) = await store.notices("a", [NoticeState.LEASED], 10)
    same(again.message(), notice.message(), "its words")
    await bench.give_back("turn")
    same((await store.commit(late)).result, CommitResult.LEASED, "once somebody had it, it is fixed")
    waiting = notify(task, one("four"), bench.tick(), RARELY, joins=False)
    await bench.write(waiting)
    await bench.write(notify_waiting(waiting.task, bench.tick()))
    same(ids(await bench.lease("later")), [f"{T1}.1.1", f"{T1}.1.2"], "the next one has its own notice")


async def an_event_of_a_stale_version_writes_nothing(store: Store) -> None:
    bench = StoreFixture(store)
    task = await _tell(bench, await bench.start(T1), "one", RARELY)
    newer = await _tell(bench, task, "two", RARELY)
    for stale in (
        notify(task, one("three"), bench.tick(), EACH, joins=True),
        notify(task, one("three"), bench.tick(), RARELY, joins=True),
    ):
        same((await store.commit(stale)).result, CommitResult.CONFLICT, "the version moved on")
    (notice,) = await store.notices("a", [NoticeState.UNREAD], 10)
    same((notice.text, await store.load(T1)), ("two", newer), "what is there")


async def events_that_wait_are_told_before_the_ending(store: Store) -> None:
    bench = StoreFixture(store)
    task = await _tell(bench, await bench.start(T1), "one", RARELY)
    await bench.lease("turn")
    await bench.settle("turn")
    for text in ("two", "three"):
        change: Change = notify(task, one(text), bench.tick(), RARELY, joins=False)
        await bench.write(change)
        task = change.task
    same(dict(await store.unread()), {}, "they wait")
    await bench.end(task)
    found = await bench.lease("last")
    same(ids(found), [f"{T1}.1.2", f"{T1}.1"], "with the ending, and before it")
    assert found[0].body is not None
    same(found[0].body.count, 2, "none is left out")


async def an_inbox_tells_people_of_events(store: Store) -> None:
    bench = StoreFixture(store)
    task = await _tell(bench, await bench.start(T1, description="build"), "half")
    await bench.end(task)
    ending, event = await store.inbox("a", 1 << 62, 10)
    same((event.kind, event.text, event.status), (SourceKind.EVENT, "half", None), "the event")
    same((ending.kind, ending.status, ending.title), (SourceKind.ENDING, "completed", "build"), "the ending")
    same([one.id for one in await store.deliveries(T1, 10)], [f"{T1}.1"], "of the endings of a task")
    same([one.id for one in await store.hot("a", 5)], [T1], "a task is listed once")
    same((await store.deliveries_of([T1]))[T1].number, 2, "of its ending")


async def a_task_stays_until_its_events_are_told_and_takes_them_along(store: Store) -> None:
    bench = StoreFixture(store)
    task = await _tell(bench, await bench.start(T1), "half")
    await bench.end(task)
    everything = Retention(history_seconds=0.0, history_tasks=0)
    await bench.lease("turn", limit=1)
    await bench.settle("turn")
    same(await store.forget(everything, bench.tick() + 10), 0, "its ending is not told")
    await bench.lease("next")
    await bench.settle("next")
    same(await store.forget(everything, bench.tick() + 10), 1, "all is told")
    same(await store.count_notices("a", list(NoticeState)), 0, "its notices went with it")
    same({name: count for name, count in (await store.counts()).items() if "notices" in name}, {}, "counted")


async def told_events_of_a_running_task_are_pruned(store: Store) -> None:
    bench = StoreFixture(store)
    task = await bench.start(T1)
    for number in range(8):
        task = await _tell(bench, task, f"event {number}")
    await bench.lease("turn", limit=6)
    await bench.settle("turn")
    await store.forget(Retention(told_events=3), bench.tick())
    left = [f"{T1}.1.{number}" for number in (6, 7, 8)]
    same([one.id for one in reversed(await store.inbox("a", 1 << 62, 10))], left, "the newest three")
    same(ids(await bench.lease("next")), left[1:], "what was not told is told")
    same((await store.counts())["notices.told"], 1, "counted")


async def an_event_can_tell_another_thread(store: Store) -> None:
    bench = StoreFixture(store)
    task = await _tell(bench, await bench.start(T1, tells="b"), "half")
    await bench.end(task)
    same(dict(await store.unread()), {"b": 2}, "the inbox that the task names")
    same([notice.thread for notice in await bench.lease("turn", "b")], ["b", "b"], "both notices")


CHECKS: tuple[Check, ...] = (
    events_and_endings_are_told_in_one_order,
    an_event_is_leased_settled_and_given_back_as_an_ending_is,
    a_failing_event_is_parked_and_comes_back,
    an_event_joins_the_last_one_until_that_is_leased,
    an_event_of_a_stale_version_writes_nothing,
    events_that_wait_are_told_before_the_ending,
    an_inbox_tells_people_of_events,
    a_task_stays_until_its_events_are_told_and_takes_them_along,
    told_events_of_a_running_task_are_pruned,
    an_event_can_tell_another_thread,
)
