"""Old and purged tasks are deleted for good; what is untold or runs again never is."""

from __future__ import annotations

import asyncio
import os

from meantime.kernel.change import submit
from meantime.kernel.limits import Retention
from meantime.kernel.model import Completed, Spill
from meantime.ports.store import CommitResult, Query, Store

from .store_fixture import MANY, OPEN_STATES, Check, StoreFixture, ids, same


async def forgetting_spares_what_was_not_told(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.ended("t_told", "t_told2", thread="b")
    await bench.tell("b")
    await bench.ended("t_muted", notify=False)
    (task,) = await bench.ended("t_again", thread="c")  # its first run is untold, its second is told
    await bench.end(await bench.resume(task))
    await store.read("turn", "t_again", 2, bench.tick())
    await bench.settle("turn", thread="c")
    await bench.ended("t_parked")
    await bench.lease("turn")
    await bench.fail("turn", parks_after=1)
    await bench.ended("t_leased")
    await bench.lease("turn")
    await bench.ended("t_unread")
    await bench.start("t_running")
    everything = Retention(history_seconds=0.0, history_tasks=0, journal_events=0)
    same(await store.forget(everything, bench.now + 100.0), 3, "what was forgotten")
    left = {"t_again", "t_parked", "t_leased", "t_unread", "t_running"}
    same(set(ids(await store.list(Query(hidden=True)))), left, "what is left")
    same(await store.load("t_told"), None, "a told ending")
    same(len(await bench.journal()), 1, "the newest event stays, so that sequence numbers go on")
    same(ids(await store.hot("b", 20)), [], "the listing of a forgotten thread")
    untold = {"t_again.1", "t_parked.1", "t_leased.1", "t_unread.1"}
    same(set(ids(await store.notices(None, OPEN_STATES, MANY))), untold, "the untold notices")
    written = await bench.write(submit(bench.task("t_new")))
    same([event.seq for event in await bench.journal()][1:], [written.seq], "the journal goes on")


async def forgetting_takes_what_is_too_old_or_too_many(store: Store) -> None:
    bench = StoreFixture(store)
    for n in range(6):
        await bench.ended(f"t_{n}", tool_call_id=f"call{n}")
        bench.now += 100.0
    await bench.tell()
    keep_all = Retention(history_seconds=1e6, history_tasks=MANY, journal_events=4)
    newest = [event.seq for event in await bench.journal()][-4:]
    same(await store.forget(keep_all, bench.now), 0, "nothing is too old or too many")
    same([event.seq for event in await bench.journal()], newest, "the journal keeps its newest")
    same([event.seq for event in await store.events(newest[1], MANY)], newest[2:], "after a number, trimmed")
    same(await store.forget(Retention(history_seconds=450.0), bench.now), 2, "too old")
    same(ids(await store.list(Query())), ["t_5", "t_4", "t_3", "t_2"], "what is young enough")
    same(await store.forget(Retention(history_seconds=1e6, history_tasks=3), bench.now), 1, "too many")
    same(ids(await store.list(Query())), ["t_5", "t_4", "t_3"], "the newest")
    await bench.start("t_0", tool_call_id="call0")  # forgotten means forgotten: its keys are free
    ended = await bench.write(bench.ending(await bench.load("t_0")))
    same(ended.number, 7, "completion numbers go on, they are never given twice")


async def purging_deletes_ended_tasks_for_good(store: Store) -> None:
    bench = StoreFixture(store)
    path = await store.spill(b"much")
    task = await bench.start("t_spilled", batch="b", tool_call_id="call")
    first = await bench.end(task, Completed(spill=Spill(path, 4, 1)))
    await bench.end(await bench.resume(first))
    await bench.start("t_running")
    await bench.ended("t_kept")
    purged = await store.purge(["t_spilled", "t_spilled", "t_running", "t_nobody"])
    same(purged, 1, "what was purged: ended tasks that are there, each once")
    same(await store.load("t_spilled"), None, "the purged task")
    same(list(await store.runs("t_spilled")), [], "its runs")
    assert await store.load("t_running") is not None, "an active task was purged"
    same(await bench.states(), {"t_kept.1": "unread"}, "the notices")
    same(dict(await store.unread()), {"a": 1}, "what is unread")
    assert not _exists(path), "the file of an earlier run of a purged task is still there"
    same(await store.purge([]), 0, "purging nothing")
    same(ids(await bench.lease("turn")), ["t_kept.1"], "the rest is told")


async def purging_never_takes_a_task_that_runs_again(store: Store) -> None:
    """The resume was handed in first: then there is nothing ended to purge."""
    bench = StoreFixture(store)
    for n in range(10):
        (task,) = await bench.ended(f"t_{n}")
        resumed = store.commit(bench.resuming(task))
        purged = await store.purge([task.id])
        if (await resumed).result is CommitResult.DONE:
            same(purged, 0, "what was purged")
            assert await store.load(task.id) is not None, "a task that runs again was purged"


async def forgetting_never_takes_a_task_that_runs_again(store: Store) -> None:
    """As with a purge, and wherever between its steps the resume is handed in."""
    bench = StoreFixture(store)
    everything = Retention(history_seconds=0.0, history_tasks=0)
    for steps in range(10):
        (task,) = await bench.ended(f"t_{steps}")
        await bench.tell()
        forgetting = asyncio.ensure_future(store.forget(everything, bench.now + 100.0))
        for _ in range(steps):
            await asyncio.sleep(0)
        resumed = store.commit(bench.resuming(task))
        await forgetting
        if (await resumed).result is CommitResult.DONE:
            assert await store.load(task.id) is not None, "a task that runs again was forgotten"


def _exists(path: str) -> bool:
    return os.path.exists(path)


CHECKS: tuple[Check, ...] = (
    forgetting_spares_what_was_not_told,
    forgetting_takes_what_is_too_old_or_too_many,
    purging_deletes_ended_tasks_for_good,
    purging_never_takes_a_task_that_runs_again,
    forgetting_never_takes_a_task_that_runs_again,
)
