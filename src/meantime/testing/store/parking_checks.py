"""Notices that fail too often or that nobody claims are parked, and come back."""

from __future__ import annotations

from meantime.ports.store import Owed, Store

from .store_fixture import Check, StoreFixture, ids, same


async def too_many_failures_park(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2")
    for turn in ("one", "two", "three"):
        same(ids(await bench.lease(turn))[0], "t_1.1", "what is delivered")
        await bench.settle(turn, "t_2.1")
        await bench.fail(turn, parks_after=3)
    same(await bench.states(), {"t_1.1": "parked", "t_2.1": "told"}, "after three failures")
    await bench.ended("t_3")
    same(ids(await bench.lease("four")), ["t_3.1"], "a parked one is not leased and does not block")
    await bench.give_back("four")
    same(await store.unpark("b"), 0, "unparking another thread")
    same(await store.unpark("a"), 1, "unparking")
    same(await store.unpark("a"), 0, "unparking again")
    first = await bench.lease("five")
    same((first[0].id, first[0].delivery), ("t_1.1", 4), "it comes again, before what came later")


async def what_nobody_claims_is_parked_and_comes_back(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.lease("turn", "claimed")
    await bench.ended("t_claimed", thread="claimed")
    await bench.ended("t_1", "t_2")
    await bench.ended("t_failed", thread="b")
    await bench.lease("turn", "b")
    await bench.fail("turn", "b", parks_after=1)
    before = bench.tick()
    await bench.lease("turn", "claimed")
    await bench.give_back("turn", "claimed")
    await bench.ended("t_fresh", thread="fresh")
    everybody = list(await store.unread())
    same(await store.park_unclaimed(before, everybody), 0, "threads that are spared")
    same(await store.park_unclaimed(before, ()), 2, "the notices that nobody claimed")
    same(await store.park_unclaimed(before, ()), 0, "parking again")
    same(await bench.states(), {"t_1.1": "parked", "t_2.1": "parked"}, "they are parked, visibly")
    same(dict(await store.unread()), {"claimed": 1, "fresh": 1}, "what is claimed or fresh stays unread")
    same(ids(await bench.lease("back")), ["t_1.1", "t_2.1"], "the next lease brings them back")
    same(ids(await bench.lease("back", "b")), [], "what failed stays parked until it is unparked")
    await bench.give_back("back")
    same(dict(await store.unread())["a"], 2, "they are as unread as before")


async def a_restart_counts_every_lease_as_a_failure(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2")
    await bench.ended("t_else", thread="b")
    await bench.lease("one", limit=1)
    await bench.lease("two", "b")
    same(await store.recover(2), 2, "the leases of the former owner")
    same(await store.recover(2), 0, "there are none any more")
    same(set((await bench.states(None)).values()), {"unread"}, "after the first failure")
    again = await bench.lease("three")
    same([(n.id, n.delivery) for n in again], [("t_1.1", 2), ("t_2.1", 1)], "they come again")
    await store.recover(2)
    same(await bench.states(), {"t_1.1": "parked", "t_2.1": "unread"}, "the second failure parks")


async def every_thread_says_what_it_is_owed(store: Store) -> None:
    bench = StoreFixture(store)
    same(list(await store.owed(None, 10)), [], "nobody")
    await bench.start("t_0", "c")
    await bench.ended("t_1", "t_2", "t_3", thread="b")
    (newest,) = await bench.ended("t_4", thread="a")
    for turn in ("one", "two"):
        await bench.lease(turn, "b", limit=1)
        await bench.fail(turn, "b", parks_after=2)
    await bench.lease("three", "b", limit=1)
    last = (await bench.load("t_3")).run.ended_at
    everybody = [Owed("a", 1, 0, 0, newest.run.ended_at), Owed("b", 1, 1, 1, last), Owed("c")]
    same(list(await store.owed(None, 10)), everybody, "all of them, by name")
    same(list(await store.owed(None, 2)), everybody[:2], "at most so many")
    same(list(await store.owed("b", 10)), everybody[1:2], "one")
    same(list(await store.owed("nobody", 10)), [], "one that there is not")


CHECKS: tuple[Check, ...] = (
    too_many_failures_park,
    what_nobody_claims_is_parked_and_comes_back,
    a_restart_counts_every_lease_as_a_failure,
    every_thread_says_what_it_is_owed,
)
