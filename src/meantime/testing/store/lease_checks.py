"""Notices are leased in order, to one turn at a time."""

from __future__ import annotations

from meantime.ports.store import Store

from .store_fixture import PARKS, Check, StoreFixture, ids, same


async def leases_are_in_order_and_exclusive(store: Store) -> None:
    bench = StoreFixture(store)
    late, early = await bench.start("t_1"), await bench.start("t_2")
    await bench.end(early)
    await bench.end(late)
    await bench.ended("t_3")
    await bench.ended("t_else", thread="b")
    first = await bench.lease("one", limit=2)
    same(ids(first), ["t_2.1", "t_1.1"], "by completion number, up to the limit")
    leases = [(notice.number, notice.delivery, notice.state.value) for notice in first]
    same(leases, [(1, 1, "leased"), (2, 1, "leased")], "the leases")
    assert all(notice.nonce for notice in first), "a notice has a nonce"
    assert first[0].nonce != first[1].nonce, "each notice has a nonce of its own"
    same(ids(await bench.lease("two")), [], "while another turn holds some")
    same(ids(await bench.lease("two", "b")), ["t_else.1"], "another thread is another matter")
    same(ids(await bench.lease("one")), ["t_3.1"], "the same turn continues")
    same(ids(await bench.lease("one")), [], "nothing is left")
    await bench.settle("one", "t_2.1", "t_1.1")
    await bench.ended("t_4")
    same(ids(await bench.lease("two")), [], "the other turn still holds one")
    await bench.settle("one")
    same(ids(await bench.lease("two")), ["t_4.1"], "it holds none")
    same(ids(await bench.lease("turn", "nobody")), [], "an unknown thread")


async def a_notice_that_was_not_settled_comes_again(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2")
    first = await bench.lease("one")
    same(set(await bench.give_back("one")), {"t_1.1", "t_2.1"}, "what was given back")
    same(list(await bench.give_back("one")), [], "a second release")
    await bench.ended("t_3")
    again = await bench.lease("two")
    same(ids(again), ["t_1.1", "t_2.1", "t_3.1"], "in the same order, before what came later")
    same([notice.delivery for notice in again], [2, 2, 1], "how often each was delivered")
    same([n.nonce for n in again[:2]], [n.nonce for n in first], "the nonces stay")
    same(await store.read("two", "t_1", 1, bench.tick()), False, "reading what it holds: not unread")
    await bench.give_back("two")
    same(
        [n.delivery for n in await bench.lease("three")], [3, 3, 2], "reading what it holds is not a delivery"
    )


async def what_failed_twice_is_leased_alone(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2", "t_3", "t_4")
    await bench.lease("one", limit=2)
    await bench.settle("one", "t_1.1")
    await bench.fail("one")  # t_2 failed once
    same(ids(await bench.lease("two")), ["t_2.1", "t_3.1", "t_4.1"], "once is not a reason")
    await bench.settle("two", "t_3.1", "t_4.1")
    await bench.fail("two")  # and twice
    await bench.ended("t_5", "t_6")
    same(ids(await bench.lease("three")), ["t_2.1"], "it is first, and alone")
    await bench.settle("three")
    for _ in range(2):
        await bench.lease("four")
        await bench.fail("four")
    await bench.ended("t_7")
    for wanted in ("t_5.1", "t_6.1"):
        same(ids(await bench.lease("five")), [wanted], "each that failed twice")
        await bench.settle("five")
    same(ids(await bench.lease("five")), ["t_7.1"], "the rest")


async def a_lease_stops_before_what_failed_twice(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2", "t_3")
    for _ in range(2):  # only the second one fails: the first is read elsewhere and given back unharmed
        await store.read("reader", "t_2", 1, bench.tick())
        await bench.fail("reader")
    same(ids(await bench.lease("one")), ["t_1.1"], "it stops before it")
    await bench.settle("one")
    same(ids(await bench.lease("two")), ["t_2.1"], "then it alone")
    await bench.settle("two")
    same(ids(await bench.lease("three")), ["t_3.1"], "then the rest")


async def giving_back_is_no_failure(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2")
    for _ in range(PARKS + 1):
        same(ids(await bench.lease("turn")), ["t_1.1", "t_2.1"], "all of them, every time")
        await bench.give_back("turn")
    same(await bench.states(), {"t_1.1": "unread", "t_2.1": "unread"}, "the states")


async def muted_endings_are_never_told(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", notify=False)
    await bench.ended("t_2")
    same(await bench.states(), {"t_1.1": "muted", "t_2.1": "unread"}, "the states")
    same([(n.id, n.number) for n in await bench.lease("turn")], [("t_2.1", 2)], "it took number 1")
    await bench.fail("turn", parks_after=1)
    await store.unpark("a")
    same((await bench.states())["t_1.1"], "muted", "it stays muted")
    same(dict(await store.unread()), {"a": 1}, "it is not unread")


async def reading_an_ending_leases_its_notice(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1", "t_2", "t_3")
    same(await store.read("one", "t_2", 1, bench.tick()), True, "reading an unread ending")
    same(await store.read("one", "t_2", 1, bench.tick()), False, "reading it again: not unread any more")
    same(await store.read("two", "t_2", 1, bench.tick()), False, "it is leased elsewhere")
    same(await store.read("one", "t_2", 2, bench.tick()), False, "a run that has not ended")
    same(await store.read("one", "t_nobody", 1, bench.tick()), False, "a task that is not there")
    same(ids(await bench.lease("one")), ["t_1.1", "t_3.1"], "what it has read is not leased again")
    same(set((await bench.settle("one")).told), {"t_1.1", "t_2.1", "t_3.1"}, "one ack settles both")
    same(await store.read("two", "t_2", 1, bench.tick()), False, "it is told")
    await bench.ended("t_4")
    await store.read("two", "t_4", 1, bench.tick())
    await bench.give_back("two")
    same(ids(await bench.lease("three")), ["t_4.1"], "without the ack it comes back")


async def reading_leaves_alone_what_is_not_unread(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_parked")
    await bench.ended("t_muted", notify=False)
    await bench.lease("one")
    await bench.fail("one", parks_after=1)
    for id in ("t_parked", "t_muted"):
        same(await store.read("two", id, 1, bench.tick()), False, f"reading {id}")
    same((await bench.settle("two")).told, (), "what the turn holds")
    same(await bench.states(), {"t_parked.1": "parked", "t_muted.1": "muted"}, "the states")


CHECKS: tuple[Check, ...] = (
    leases_are_in_order_and_exclusive,
    a_notice_that_was_not_settled_comes_again,
    what_failed_twice_is_leased_alone,
    a_lease_stops_before_what_failed_twice,
    giving_back_is_no_failure,
    muted_endings_are_never_told,
    reading_an_ending_leases_its_notice,
    reading_leaves_alone_what_is_not_unread,
)
