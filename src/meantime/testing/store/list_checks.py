"""Tasks, counts and notices are found again: the right ones, in the right order."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from meantime.kernel.change import SHUTDOWN, Facts, amend, decide
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.limits import WATCH
from meantime.kernel.model import BatchCount, Cancelled, Completed, Failed, Lost, Outcome, TimedOut, Work
from meantime.kernel.notices import NoticeState
from meantime.ports.store import Query, Store

from .store_fixture import MANY, OPEN_STATES, Check, StoreFixture, ids, same


async def active_tasks_oldest_first(store: Store) -> None:
    bench = StoreFixture(store)
    for id in ("t_3", "t_1", "t_2"):
        await bench.start(id)
    (again, *_) = await bench.ended("t_0", "t_9")
    await bench.resume(again)
    await bench.write(decide(await bench.load("t_1"), Move.CANCEL, Facts(by="user"), bench.tick()))
    found = ids(await store.active())
    same(sorted(found), ["t_0", "t_1", "t_2", "t_3"], "the active tasks")
    same([id for id in found if id != "t_0"], ["t_3", "t_1", "t_2"], "their order")


async def lists_are_newest_first_and_filtered(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.start("t_5", batch="b")
    await bench.ended("t_2", batch="b")
    await bench.end(await bench.start("t_9"), Failed("no"))
    await bench.start("t_1", "other", batch="b")
    (cleared,) = await bench.ended("t_7")
    await bench.hide(cleared)

    async def listed(**fields: Any) -> list[str]:
        return ids(await store.list(Query(**fields)))

    same(await listed(), ["t_1", "t_9", "t_2", "t_5"], "everything")
    same(await listed(hidden=True), ["t_7", "t_1", "t_9", "t_2", "t_5"], "with the cleared one")
    same(await listed(thread="a"), ["t_9", "t_2", "t_5"], "by thread")
    same(await listed(thread="a", hidden=True), ["t_7", "t_9", "t_2", "t_5"], "and with the cleared")
    same(await listed(thread="nobody"), [], "an unknown thread")
    same(await listed(batch="b"), ["t_1", "t_2", "t_5"], "by batch")
    same(await listed(batch="b", thread="a"), ["t_2", "t_5"], "by batch and thread")
    same(await listed(batch="nothing"), [], "an unknown batch")
    same(await listed(statuses=frozenset({Status.RUNNING})), ["t_1", "t_5"], "by status")
    two = frozenset({Status.FAILED, Status.RUNNING})
    same(await listed(statuses=two, thread="a"), ["t_9", "t_5"], "by statuses and thread")
    same(await listed(statuses=two, batch="b", thread="a"), ["t_5"], "by everything")
    same(await listed(statuses=frozenset[Status]()), [], "by no status at all")
    same(await listed(limit=2), ["t_1", "t_9"], "the first page")
    same(await listed(limit=2, offset=2), ["t_2", "t_5"], "the second page")
    same(await listed(thread="a", limit=1, offset=1), ["t_2"], "the second page of a thread")
    same(await listed(offset=10), [], "a page past the end")


async def prefixes_find_tasks(store: Store) -> None:
    bench = StoreFixture(store)
    for id, thread in (("t_2qxa", "a"), ("t_2qxb", "b"), ("t_2r", "a"), ("own-1", "a"), ("t_2qxaa", "a")):
        await bench.start(id, thread)

    async def found(prefix: str, thread: str | None = None, limit: int = MANY) -> set[str]:
        return set(ids(await store.find(prefix, thread, limit)))

    same(await found("t_2qx"), {"t_2qxa", "t_2qxaa", "t_2qxb"}, "with t_")
    same(await found("2qx"), {"t_2qxa", "t_2qxaa", "t_2qxb"}, "without t_")
    same(await found("2qx", "a"), {"t_2qxa", "t_2qxaa"}, "in one thread")
    same(await found("t_2qxb", "a"), set[str](), "the task of another thread")
    same(await found("own"), {"own-1"}, "an id that is not ours")
    same(await found("t_2r"), {"t_2r"}, "a whole id")
    same(await found("3"), set[str](), "nothing")
    same(await found("2QX"), set[str](), "another case is another id")
    same(await found("%"), set[str](), "a wildcard is not one")
    same(len(await found("2", limit=2)), 2, "at most the limit")
    same(len(await found("")), 5, "every id starts with nothing")


async def hot_is_the_newest_and_the_untold(store: Store) -> None:
    bench = StoreFixture(store)
    first, second = await bench.start("t_first"), await bench.start("t_second")
    await bench.end(second)
    await bench.end(first)  # the order is of endings, not of births
    await bench.ended("t_other", thread="b")
    same(ids(await store.hot("a", 20)), ["t_first", "t_second"], "by completion, newest first")
    same(ids(await store.hot("a", 1)), ["t_first", "t_second"], "an untold one stays, over the limit")
    await bench.tell()
    same(ids(await store.hot("a", 1)), ["t_first"], "a told one leaves")
    await bench.ended("t_unread")
    await bench.ended("t_muted1", "t_muted2", notify=False)
    same(ids(await store.hot("a", 1)), ["t_muted2", "t_unread"], "nobody waits to be told a muted one")
    same(ids(await store.hot("a", 0)), ["t_unread"], "the untold alone")
    same(ids(await store.hot("nobody", 5)), [], "an unknown thread")
    everything = [await bench.load(id) for id in ("t_muted2", "t_muted1", "t_unread", "t_first", "t_second")]
    same(list(await store.hot("a", 20)), everything, "the tasks as they are")


async def clearing_brings_nothing_back(store: Store) -> None:
    """A cleared ending keeps its place among the newest: what had left the listing stays out."""
    bench = StoreFixture(store)
    *_, newest = await bench.ended("t_1", "t_2", "t_3")
    await bench.lease("turn")
    await bench.settle("turn")
    same(ids(await store.hot("a", 2)), ["t_3", "t_2"], "the newest two")
    await bench.hide(newest)
    same(ids(await store.hot("a", 2)), ["t_2"], "the newest is cleared, t_1 does not come back")


async def hot_leaves_out_what_is_cleared(store: Store) -> None:
    bench = StoreFixture(store)
    old, middle, _ = await bench.ended("t_old", "t_middle", "t_new")
    await bench.hide(middle)
    same(ids(await store.hot("a", 2)), ["t_new", "t_old"], "cleared ones are left out")
    await bench.lease("turn", limit=1)
    same(ids(await store.hot("a", 0)), ["t_new", "t_old"], "a leased one is untold")
    await bench.fail("turn", parks_after=1)
    same((await bench.states())["t_old.1"], "parked", "the state of t_old.1")
    same(ids(await store.hot("a", 0)), ["t_new", "t_old"], "a parked one is untold")
    await bench.end(await bench.resume(old))
    same(ids(await store.hot("a", 20)), ["t_old", "t_new"], "one entry a task, at its newest ending")


async def counts_count(store: Store) -> None:
    bench = StoreFixture(store)
    same(_filled(await store.counts()), {}, "an empty store")
    await bench.start("t_running")
    await bench.ended("t_1", "t_2", "t_3")
    await bench.end(await bench.start("t_failed"), Failed("no"))
    await bench.ended("t_muted", thread="b", notify=False)
    await bench.lease("turn", limit=2)
    await bench.settle("turn", "t_1.1")
    wanted = {
        "running": 1, "completed": 4, "failed": 1, "notices.unread": 2, "notices.leased": 1,
        "notices.told": 1, "notices.muted": 1,
    }  # fmt: skip
    same(_filled(await store.counts()), wanted, "tasks by status and notices by state")


async def batches_are_counted(store: Store) -> None:
    bench = StoreFixture(store)
    same(await store.batch("b"), None, "an unknown batch")
    tasks = [await bench.start(f"t_{n}", batch="b") for n in range(4)]
    await bench.start("t_other", batch="c")
    await bench.end(tasks[0])
    ended = await bench.end(tasks[1], Failed("no"))
    await bench.end(tasks[2])
    count = await store.batch("b")
    assert count is not None, "the batch is not there"
    same((count.id, count.ended, count.total, count.failed), ("b", 3, 4, 1), "the count")
    await bench.resume(ended)
    count = await store.batch("b")
    same(count and (count.ended, count.total, count.failed), (2, 4, 0), "the count after a resume")
    await bench.start("t_elsewhere", thread="other", batch="b")
    for thread, total in ((None, 5), ("other", 1), (ended.thread, 4)):
        count = await store.batch("b", thread)
        same(count and count.total, total, f"the tasks of the batch in thread {thread}")
    same(await store.batch("b", "nowhere"), None, "a batch that has nothing in this thread")


async def an_ending_keeps_how_things_stood(store: Store) -> None:
    """With its notice: what starts, ends or is resumed later does not change it."""
    bench = StoreFixture(store)
    tasks = [await bench.start(f"t_{n}", batch="b") for n in range(4)]
    other = await bench.start("t_other", batch="c")
    await bench.start("t_watch", batch="d", work=Work(WATCH))
    await bench.start("t_elsewhere", thread="other", batch="b")
    changes = [bench.ending(tasks[0]), bench.ending(tasks[1], Failed("no"))]
    changes.insert(1, bench.ending(tasks[0], Failed("too late")))  # it must not count
    done = await asyncio.gather(*(store.commit(change) for change in changes))
    found = [one.batch for one in done]
    same(found, [BatchCount("b", 1, 4), None, BatchCount("b", 2, 4, 1)], "the batch with each commit")
    joined = await bench.write(bench.resuming(changes[2].task, "c"))
    same(joined.batch, BatchCount("c", 0, 2), "the batch that a resumed task joins")
    same(await store.batch("b", "a"), BatchCount("b", 1, 3), "the batch that it leaves")
    same(ids(await store.list(Query(batch="c"))), ["t_other", "t_1"], "the tasks of the batch that it joins")
    await bench.end(other)
    await bench.end(tasks[2])
    await bench.start("t_later", batch="b")
    wanted = {
        "t_0.1": (BatchCount("b", 1, 4), 4),
        "t_1.1": (BatchCount("b", 2, 4, 1), 3),
        "t_other.1": (BatchCount("c", 1, 2), 3),
        "t_2.1": (BatchCount("b", 2, 3), 2),
    }
    told = await store.notices("a", NoticeState, MANY)
    same({one.id: (one.batch, one.running) for one in told}, wanted, "how things stood at each ending")
    await store.purge(["t_0"])
    await bench.end(tasks[3])
    last = (await store.notices("a", NoticeState, MANY))[-1]
    same((last.batch, last.running), (BatchCount("b", 2, 3), 2), "after a task was deleted")


async def notices_are_listed_by_state(store: Store) -> None:
    bench = StoreFixture(store)
    (first, *_) = await bench.ended("t_1", "t_2", "t_3", batch="b")
    await bench.ended("t_else", thread="b")
    await bench.lease("turn", limit=2)
    await bench.settle("turn", "t_1.1")

    async def listed(thread: str | None, *states: NoticeState, limit: int = MANY) -> list[str]:
        return ids(await store.notices(thread, states, limit))

    same(await listed("a", NoticeState.UNREAD), ["t_3.1"], "unread")
    same(await listed("a", *OPEN_STATES), ["t_2.1", "t_3.1"], "untold, by number")
    same(await listed("a", *NoticeState, limit=2), ["t_1.1", "t_2.1"], "up to the limit")
    same(ids(await store.notices("a", NoticeState, 2, 1)), ["t_2.1", "t_3.1"], "from an offset on")
    same(await store.count_notices("a", NoticeState), 3, "how many there are")
    same(await store.count_notices(None, [NoticeState.UNREAD]), 2, "how many are unread, of every thread")
    same(await listed("a"), [], "no state")
    same(set(await listed(None, NoticeState.UNREAD)), {"t_3.1", "t_else.1"}, "of every thread")
    same(await listed("nobody", *NoticeState), [], "an unknown thread")
    (told,) = await store.notices("a", [NoticeState.TOLD], MANY)
    same((told.task, told.number, told.state, told.delivery), (first, 1, NoticeState.TOLD, 1), "the notice")
    same(dict(await store.unread()), {"a": 1, "b": 1}, "unread by thread")


async def following_are_the_ended_with_a_follow_up(store: Store) -> None:
    """Their next run is still to be recorded; oldest first."""
    bench = StoreFixture(store)
    same(list(await store.following()), [], "an empty store")
    outcomes: dict[str, Outcome] = {
        "t_done": Completed("done"), "t_failed": Failed("broke"), "t_late": TimedOut(1.0),
        "t_gone": Lost("gone"), "t_closed": Cancelled(SHUTDOWN), "t_enough": Cancelled("user"),
    }  # fmt: skip
    tasks = {id: await bench.start(id) for id in outcomes}
    for id, task in tasks.items():
        change = amend(task, bench.tick(), durable=True, follow_up=f"more of {id}")
        await bench.write(change)
        tasks[id] = change.task
    await bench.ended("t_plain")
    same(ids(await store.following()), [], "while they run")
    ended = {id: await bench.end(tasks[id], outcome) for id, outcome in outcomes.items()}
    left = ["t_done", "t_failed", "t_late", "t_gone", "t_closed"]
    same(ids(await store.following()), left, "all but what somebody cancelled")
    same((await store.following())[0], ended["t_done"], "the whole task")
    await bench.write(bench.resuming(ended["t_done"]))
    same(ids(await store.following()), left[1:], "when its next run is recorded")


def _filled(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


CHECKS: tuple[Check, ...] = (
    active_tasks_oldest_first,
    lists_are_newest_first_and_filtered,
    prefixes_find_tasks,
    hot_is_the_newest_and_the_untold,
    hot_leaves_out_what_is_cleared,
    clearing_brings_nothing_back,
    counts_count,
    batches_are_counted,
    an_ending_keeps_how_things_stood,
    notices_are_listed_by_state,
    following_are_the_ended_with_a_follow_up,
)
