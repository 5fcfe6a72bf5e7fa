"""Searches find what people look for: by words, by agent, sorted, counted."""

from __future__ import annotations

from typing import Any

from meantime.kernel.lifecycle import ACTIVE, Status
from meantime.kernel.model import Failed, Work
from meantime.ports.store import Query, Sort, Store

from .store_fixture import Check, StoreFixture, ids, same


async def pages_are_searched_and_sorted(store: Store) -> None:
    bench = StoreFixture(store)
    first = await bench.start("t_1", description="Index the Repo", session="s-1")
    await bench.start("t_2", description="100%_done", work=Work("agent", "explore"))
    third = await bench.start("t_3", "b", description="Über die Straße")
    await bench.end(third, Failed("no"))
    await bench.end(first)
    (again,) = await bench.ended("t_4", description="repo again")
    await bench.resume(again)

    async def listed(**fields: Any) -> list[str]:
        query = Query(**fields)
        found = ids(await store.list(query))
        if query.limit == 50:
            same(await store.count(query), len(found), f"the count of {fields}")
        return found

    same(await listed(search="REPO"), ["t_4", "t_1"], "whatever the case")
    same(await listed(search="über DIE STRASSE"), ["t_3"], "every alphabet")
    same(await listed(search="%_d"), ["t_2"], "wildcards are letters")
    same(await listed(search="%"), ["t_2"], "also alone")
    same(await listed(search="repo", thread="b"), [], "in one thread")
    same(await listed(search="call"), [], "the name is not the title where there is a description")
    same(await listed(agent="explore"), ["t_2"], "an agent by its name")
    same(await listed(agent="call"), ["t_4", "t_3", "t_1"], "other work by its kind")
    same(await listed(session="s-1"), ["t_1"], "by session")
    running = frozenset({Status.RUNNING, Status.FAILED})
    same(await listed(statuses=running, resumed=True), ["t_4", "t_3"], "of the running, the resumed")
    same(await listed(statuses=running, resumed=False), ["t_3", "t_2"], "of the running, the others")
    same(await listed(sort=Sort.OLDEST), ["t_1", "t_2", "t_3", "t_4"], "oldest first")
    same(await listed(sort=Sort.UPDATED), ["t_4", "t_1", "t_3", "t_2"], "the last changed first")
    same((await listed(sort=Sort.LONGEST))[:2], ["t_1", "t_3"], "the longest first")
    same(await listed(sort=Sort.OLDEST, limit=2, offset=1), ["t_2", "t_3"], "a page of them")
    same(await store.count(Query(limit=1, offset=3)), 4, "a count is not paged")
    await bench.hide(await bench.load("t_1"))
    same(await store.count(Query()), 3, "what is cleared does not count")
    same(await store.count(Query(thread="a", statuses=frozenset({Status.COMPLETED}))), 0, "nor here")
    same(await store.count(Query(hidden=True)), 4, "unless it is asked for")


async def active_tasks_are_told_apart_by_their_runs(store: Store) -> None:
    """A later run counts from its resume on, even while it waits for a slot."""
    bench = StoreFixture(store)
    await bench.start("t_1")
    again, waits, _ = await bench.ended("t_2", "t_3", "t_4")
    await bench.resume(again)
    await bench.write(bench.resuming(waits))
    for resumed, active in ((True, ["t_3", "t_2"]), (False, ["t_1"]), (None, ["t_3", "t_2", "t_1"])):
        query = Query(statuses=ACTIVE, resumed=resumed)
        same(ids(await store.list(query)), active, f"active, resumed: {resumed}")
        same(await store.count(query), len(active), f"the count of active, resumed: {resumed}")
        same(ids(await store.list(Query(resumed=resumed))), sorted([*active, "t_4"])[::-1], "and the ended")


async def statistics_add_up(store: Store) -> None:
    bench = StoreFixture(store)
    same((await store.statistics(None)).total, 0, "of nothing")
    await bench.start("t_1", work=Work("agent", "explore"))
    (again, _) = await bench.ended("t_2", "t_3")
    await bench.resume(again)
    slow = await bench.start("t_4", "b")
    bench.now += 9
    await bench.end(slow)
    (cleared,) = await bench.ended("t_5")
    await bench.hide(cleared)
    found = await store.statistics(None)
    same((found.total, found.by_agent), (4, {"explore": 1, "call": 3}), "what is not cleared")
    same((found.longest, found.shortest, found.average), (10.0, 1.0, 5.5), "the durations")
    heaps = {(heap.status.value, heap.resumed): heap.tasks for heap in found.heaps if heap.agent == "call"}
    same(heaps, {("running", True): 1, ("completed", False): 2}, "by status and run")
    same((await store.statistics("b")).total, 1, "of one thread")


async def the_last_event_is_known(store: Store) -> None:
    bench = StoreFixture(store)
    same(await store.last_event(), 0, "an empty journal")
    await bench.ended("t_1")
    same(await store.last_event(), (await bench.journal())[-1].seq, "the newest")


CHECKS: tuple[Check, ...] = (
    pages_are_searched_and_sorted,
    active_tasks_are_told_apart_by_their_runs,
    statistics_add_up,
    the_last_event_is_known,
)
