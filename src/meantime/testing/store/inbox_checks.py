"""An inbox as people look at it: every notice with what became of it, page by page."""

from __future__ import annotations

from meantime.kernel.inbox_page import InboxEntry
from meantime.ports.store import Store

from .store_fixture import Check, StoreFixture, same

ALL = 1 << 62


async def an_inbox_says_what_became_of_each_notice(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_told", "t_held", "t_new")
    await bench.lease("one", limit=2)
    await bench.settle("one", "t_told.1")
    newest, held, told = await store.inbox("a", ALL, 10)
    same([newest.id, held.id, told.id], ["t_new.1", "t_held.1", "t_told.1"], "newest first")
    same((told.state, told.turn, told.attempts), ("told", "one", 1), "one that was told")
    same(told.told_at is not None and held.told_at is None, True, "the time of telling")
    same((held.state, held.turn), ("leased", "one"), "one that a turn holds")
    same((newest.state, newest.turn, newest.attempts), ("unread", None, 0), "one that nobody asked for")
    same(dict(await store.count_inbox("a", 10)), {"told": 1, "leased": 1, "unread": 1}, "counts by state")
    same(dict(await store.count_inbox("nobody", 10)), {}, "counts of a thread that was never used")


async def an_inbox_is_paged_by_number(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended(*(f"t_{at}" for at in range(5)))
    await bench.ended("t_else", thread="b")
    pages: list[list[int]] = []
    before = ALL
    while page := await store.inbox("a", before, 2):
        pages.append([entry.number for entry in page])
        before = page[-1].number
    same(pages, [[5, 4], [3, 2], [1]], "pages, newest first")
    await bench.lease("one", limit=5)
    await bench.settle("one", *(f"t_{at}.1" for at in range(5)))
    same(dict(await store.count_inbox("a", 3)), {"told": 3}, "no more are counted than asked for")


async def the_notices_of_a_task_are_found_by_run(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2")
    found = await store.deliveries("t_2", 10)
    same([_told(entry) for entry in found], [("t_2.1", 1, 2, "unread")], "of one task alone")
    same(list(await store.deliveries("t_none", 10)), [], "of a task that is not there")


async def turns_that_are_told_something_are_counted(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.lease("empty")
    await bench.ended("t_1", "t_2", "t_3", "t_4")
    await bench.ended("t_else", thread="b")
    await bench.lease("one", limit=1)
    await bench.settle("one", "t_1.1")
    await bench.lease("one", limit=1)
    await bench.settle("one", "t_2.1")
    same(await store.read("two", "t_4", 1, bench.tick()), True, "an ending that the agent reads by itself")
    await bench.settle("two", "t_4.1")
    await bench.lease("three", limit=1)
    await bench.give_back("three")
    found = {entry.id: entry.turn_number for entry in await store.inbox("a", ALL, 10)}
    same(found, {"t_1.1": 1, "t_2.1": 1, "t_3.1": None, "t_4.1": 2}, "the numbers of turns")
    await bench.lease("else", "b")
    same((await store.inbox("b", ALL, 1))[0].turn_number, 1, "another thread counts by itself")


async def single_notices_are_unparked(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2", "t_3")
    for turn in ("one", "two", "three"):
        await bench.lease(turn)
        await bench.fail(turn, parks_after=1)
    parked = [entry for entry in await store.inbox("a", ALL, 10) if entry.state == "parked"]
    same(len(parked), 3, "parked after one failure")
    same({(entry.parked_for, entry.failures) for entry in parked}, {("failures", 1)}, "the reason")
    same(await store.unpark("b", ["t_2.1"]), 0, "another thread's notice")
    same(await store.unpark("a", ["t_2.1", "t_2.1", "t_none.1", "odd"]), 1, "one of them")
    states = {entry.id: str(entry.state) for entry in await store.inbox("a", ALL, 10)}
    same(states, {"t_1.1": "parked", "t_2.1": "unread", "t_3.1": "parked"}, "the others stay parked")


def _told(entry: InboxEntry) -> tuple[str, int, int, str]:
    return entry.id, entry.run, entry.number, str(entry.state)


CHECKS: tuple[Check, ...] = (
    an_inbox_says_what_became_of_each_notice,
    an_inbox_is_paged_by_number,
    the_notices_of_a_task_are_found_by_run,
    turns_that_are_told_something_are_counted,
    single_notices_are_unparked,
)
