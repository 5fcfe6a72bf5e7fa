"""Rows and numbers for people: deliveries, children, places and counts."""

from __future__ import annotations

from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Failed, Work
from meantime.kernel.row_facts import EndingDelivery
from meantime.kernel.search_query import parse
from meantime.ports.search_filter import fits, narrowed
from meantime.ports.store import Query, Store

from .store_fixture import MANY, PARKS, Check, StoreFixture, ids, same


async def pages_go_on_before_a_place(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended(*(f"t_{number}" for number in range(5)))
    await bench.start("t_other", "b", batch="b1")
    first = await store.list(Query(limit=2))
    same(ids(first), ["t_other", "t_4"], "the first page")
    place = await store.place("t_4")
    same(ids(await store.list(Query(limit=2, before=place))), ["t_3", "t_2"], "the page behind it")
    await bench.start("t_new")
    same(ids(await store.list(Query(limit=2, before=place))), ["t_3", "t_2"], "whatever comes meanwhile")
    await store.purge(["t_4"])
    same(ids(await store.list(Query(limit=9, before=place))), ["t_3", "t_2", "t_1", "t_0"], "and goes")
    same(ids(await store.list(Query(thread="a", limit=1, before=place))), ["t_3"], "of a thread")
    same(ids(await store.list(Query(batch="b1", before=place))), [], "of a batch")
    same(ids(await store.list(Query(search="work", limit=1, before=place))), ["t_3"], "of a search")
    same(await store.place("t_unknown"), None, "the place of nothing")


async def counts_stop_where_they_are_told_to(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended(*(f"t_{number}" for number in range(6)))
    same(await store.count(Query(thread="a"), 4), 4, "no further than asked")
    same(await store.count(Query(thread="a"), 100), 6, "all of a thread")
    same(await store.count(Query(search="work"), 4), 4, "of a search")
    for number in range(3):
        await bench.start(f"t_active{number}")
    running = frozenset({Status.RUNNING})
    same(await store.count(Query(statuses=running), 2), 2, "of a status")
    same(await store.count(Query(statuses=running), 9), 3, "all of a status")
    same(await store.count(Query(), 5), 5, "of everything")
    same(await store.count(Query(), 100), 9, "all of everything")


async def ended_tasks_are_counted_by_status(store: Store) -> None:
    bench = StoreFixture(store)
    one, two = await bench.ended("t_1", "t_2")
    await bench.end(await bench.start("t_3"), Failed("no"))
    await bench.start("t_4")
    same(dict(await store.ended_counts()), {"completed": 2, "failed": 1}, "what has ended")
    await bench.hide(one)
    same(dict(await store.ended_counts()), {"completed": 1, "failed": 1}, "without what was cleared")
    await bench.resume(two)
    same(dict(await store.ended_counts()), {"failed": 1}, "without what runs again")
    await store.purge(["t_3"])
    same(dict(await store.ended_counts()), {}, "without what was deleted")


async def deliveries_are_known_by_task(store: Store) -> None:
    bench = StoreFixture(store)
    one, two = await bench.ended("t_1", "t_2")
    await bench.start("t_3")
    found = await store.deliveries_of(["t_1", "t_2", "t_3", "t_unknown"])
    same(sorted(found), ["t_1", "t_2"], "the tasks that ended")
    same(found["t_2"], EndingDelivery("unread", 2, None, two.run.ended_at), "an unread notice")
    await bench.lease("turn", limit=1)
    same(
        (await store.deliveries_of(["t_1"]))["t_1"],
        EndingDelivery("leased", 1, "turn", one.run.ended_at, None, 1),
        "leased",
    )
    await store.settle("a", "turn", (), (), 5_000.0)
    same(
        (await store.deliveries_of(["t_1"]))["t_1"],
        EndingDelivery("told", 1, "turn", 5_000.0, None, 1),
        "told",
    )
    await bench.resume(one)
    same(dict(await store.deliveries_of(["t_1"])), {}, "a new run has no notice yet")


async def a_parked_notice_says_why(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_1")
    for turn in range(PARKS):
        await bench.lease(f"turn{turn}")
        await store.release("a", f"turn{turn}", failed=True, parks_after=PARKS)
    same((await store.deliveries_of(["t_1"]))["t_1"].reason, "failures", "a delivery that kept failing")
    await bench.ended("t_2", thread="b")
    await store.park_unclaimed(bench.now + 9, ())
    same((await store.deliveries_of(["t_2"]))["t_2"].reason, "unclaimed", "a thread that nobody claims")
    same(
        dict(await store.held_of(["a", "b", "c"], MANY)), {"a": (0, 1), "b": (0, 1), "c": (0, 0)}, "by thread"
    )
    await bench.ended("t_3", "t_4", thread="c")
    await bench.lease("turn", "c")
    same((await store.held_of(["c"], MANY))["c"], (2, 0), "what a turn holds")
    same((await store.held_of(["c"], 1))["c"], (1, 0), "no further than asked")
    same(await store.late(0.0, MANY), (2, 4, 0), "parked is late, whenever it ended")
    same(await store.late(bench.now + 9, MANY), (4, 4, 0), "and what ended before then")
    same((await store.late(bench.now + 9, 3))[1], 3, "counted no further than asked")
    await store.settle("c", "turn", (), (), bench.tick())
    same((await store.late(0.0, MANY))[1:], (2, 2), "what was told is counted apart")


async def children_are_counted(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.start("t_parent")
    for number in range(3):
        await bench.start(f"t_{number}", parent="t_parent")
    same(dict(await store.children_of(["t_parent", "t_0"], MANY)), {"t_parent": 3}, "by parent")
    same(dict(await store.children_of(["t_parent"], 2)), {"t_parent": 2}, "no further than asked")
    await bench.end(await bench.load("t_0"))
    await store.purge(["t_0"])
    same(dict(await store.children_of(["t_parent"], MANY)), {"t_parent": 2}, "without what was deleted")


async def searches_fit_all_of_their_terms(store: Store) -> None:
    bench = StoreFixture(store)
    first = await bench.start("t_1", batch="b", description="Deploy the page")
    (second,) = await bench.ended("t_2", thread="other", work=Work("shell", "make"), description="Deploy")
    third = await bench.start("t_3", work=Work("agent", "review"))

    async def found(q: str, now: float = 0.0) -> list[str]:
        query = narrowed(Query(), parse(q), now)
        tasks = [first, await bench.load("t_2"), third]
        same({task.id for task in tasks if fits(query, task)}, set(ids(await store.list(query))), q)
        same(await store.count(query), len(await store.list(query)), f"the count of {q}")
        same(await store.count(query, 1), min(1, len(await store.list(query))), f"the bounded count of {q}")
        return ids(await store.list(query))

    same(await found("deploy"), ["t_2", "t_1"], "a word")
    same(await found("deploy -page"), ["t_2"], "without a word")
    same(await found("kind:agent,shell"), ["t_3", "t_2"], "by kind")
    same(await found("-kind:shell"), ["t_3", "t_1"], "without a kind")
    same(await found("agent:review"), ["t_3"], "by agent")
    same(await found("-batch:b"), ["t_3", "t_2"], "without a batch, or with none")
    same(await found("thread:a,other status:running"), ["t_3", "t_1"], "by threads")
    same(await found("since:1s", second.created_at + 1), ["t_3", "t_2"], "since a time")
    same(await found("until:1s", second.created_at + 1), ["t_1"], "until a time")
    same(await found("since:1s thread:a kind:agent", third.created_at + 1), ["t_3"], "and more")
    same(await found("since:1s", third.created_at + 9), [], "later than everything")


CHECKS: tuple[Check, ...] = (
    searches_fit_all_of_their_terms,
    pages_go_on_before_a_place,
    counts_stop_where_they_are_told_to,
    ended_tasks_are_counted_by_status,
    deliveries_are_known_by_task,
    a_parked_notice_says_why,
    children_are_counted,
)
