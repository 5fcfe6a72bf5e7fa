"""Changes are written whole or refused, with their numbers, notices and archived runs."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from msgspec.structs import replace

from meantime.kernel.change import Change, amend, submit
from meantime.kernel.model import (
    Cancelled,
    Completed,
    Failed,
    InlineLimits,
    Lost,
    Outcome,
    Progress,
    Spill,
    TimedOut,
)
from meantime.kernel.notice_sources import Draft
from meantime.kernel.notices import NoticeState
from meantime.ports.store import CommitResult, Committed, Store

from .store_fixture import MANY, Check, StoreFixture, ids, same


async def a_task_comes_back_as_it_was_written(store: Store) -> None:
    bench = StoreFixture(store)
    task = bench.task(
        "t_0000000001", tool_call_id="call", batch="b", description="größer 漢字 😀", message_id="m",
        parent="p", depth=2, session="s", forked=True, notify=False, retry="idempotent",
        inline=InlineLimits(10, 2), progress=Progress(12.5, "phase", "läuft", {"grep": 2}, ("grep",), 5.0),
    )  # fmt: skip
    await bench.write(submit(task))
    same(await store.load(task.id), task, "the task")
    same(await store.load("t_nobody"), None, "a task that is not there")
    spill = Spill("/nowhere", 3, 1, head="é", tail="ü")
    outcomes: list[Outcome] = [
        Completed({"deep": [1, 2.5, None, {"ключ": "значение"}]}, spill, True, {"x": 1}, "done", "GOAL"),
        Failed("no", "code", "trace", 3, ["partial"]),
        Cancelled("user", "why", "half", True),
        TimedOut(2.5, "half", True),
        Lost("gone", "half"),
    ]
    for place, outcome in enumerate(outcomes):
        ended = await bench.end(await bench.start(f"t_end{place}"), outcome)
        same(await store.load(ended.id), ended, "the ended task")


async def a_stale_version_is_a_conflict(store: Store) -> None:
    bench = StoreFixture(store)
    task = await bench.start("t_a")
    first, second = bench.ending(task, Completed("first")), bench.ending(task, Failed("second"))
    await bench.write(first)
    events = await bench.journal()
    same((await store.commit(second)).result, CommitResult.CONFLICT, "the second ending")
    same(await store.load(task.id), first.task, "the task after a conflict")
    same(await bench.journal(), events, "the journal after a conflict")
    same(ids(await store.notices("a", NoticeState, MANY)), ["t_a.1"], "the notices after a conflict")
    other = await bench.start("t_b")
    newer, older = (amend(other, bench.tick(), description=text) for text in ("newer", "older"))
    await bench.write(newer)
    same((await store.commit(older)).result, CommitResult.CONFLICT, "an older change that is not a move")
    same(await store.load("t_b"), newer.task, "the newer change")
    unknown = amend(bench.task("t_unknown"), bench.tick(), description="?")
    same((await store.commit(unknown)).result, CommitResult.CONFLICT, "a change of a task that is not there")
    same(await store.load("t_unknown"), None, "the task that is not there")


async def a_change_that_writes_nothing_writes_nothing(store: Store) -> None:
    bench = StoreFixture(store)
    (task,) = await bench.ended("t_a")
    again = bench.ending(task)
    assert not again.writes, "the kernel must see that it has ended"
    before = (await bench.journal(), await bench.states())
    await store.commit(again)
    same(await store.load(task.id), task, "the task")
    same((await bench.journal(), await bench.states()), before, "the journal and the notices")


async def the_same_id_is_refused(store: Store) -> None:
    bench = StoreFixture(store)
    task = await bench.start("t_a", description="first")
    again = await store.commit(submit(bench.task("t_a", "other", description="second")))
    same((again.result, again.existing), (CommitResult.SAME_ID, "t_a"), "the same id again")
    same(await store.load("t_a"), task, "the task that was there")
    same(len(await bench.journal()), 1, "events")


async def the_same_tool_call_is_refused(store: Store) -> None:
    bench = StoreFixture(store)
    await bench.start("t_a", tool_call_id="call")
    again = await store.commit(submit(bench.task("t_b", tool_call_id="call")))
    same((again.result, again.existing), (CommitResult.SAME_CALL, "t_a"), "the same tool call again")
    same(await store.load("t_b"), None, "the refused task")
    await bench.start("t_c", "other", tool_call_id="call")
    await bench.start("t_d")
    await bench.start("t_e")  # no tool call is not the same tool call


async def numbers_have_no_gaps_and_follow_commits(store: Store) -> None:
    """Many commits at once over several threads, every fourth of them stale."""
    bench = StoreFixture(store)
    threads, each = ("a", "b", "c"), 40
    tasks = [await bench.start(f"t_{thread}{n}", thread) for n in range(each) for thread in threads]
    changes: list[Change] = []
    for place, task in enumerate(tasks):
        changes.append(bench.ending(task))
        if place % 4 == 0:
            changes.append(bench.ending(task, Failed("too late")))
    results = await asyncio.gather(*(store.commit(change) for change in changes))
    pairs = zip(changes, results, strict=True)
    done = [(change, result) for change, result in pairs if result.result is CommitResult.DONE]
    same(len(done), len(tasks), "endings that were written")
    done.sort(key=lambda pair: pair[1].seq)
    for thread in threads:
        numbers = [result.number for change, result in done if change.task.thread == thread]
        same(numbers, list(range(1, each + 1)), f"completion numbers of {thread} by commit")
        written = {result.number: change.task.id for change, result in done if change.task.thread == thread}
        told = await store.notices(thread, [NoticeState.UNREAD], MANY)
        same({notice.number: notice.task_id for notice in told}, written, f"the notices of {thread}")
        same([notice.number for notice in told], numbers, f"the order of the notices of {thread}")


async def a_failing_change_does_not_sink_its_neighbours(store: Store) -> None:
    bench = StoreFixture(store)
    first, last, stale = bench.task("t_first"), bench.task("t_last"), await bench.start("t_stale")
    await bench.end(stale)
    doubled = amend(await bench.load("t_stale"), bench.tick())
    second = (Draft("a", bench.now),)  # a second notice for one run: nothing may take this
    results = await asyncio.gather(
        store.commit(submit(first)),
        store.commit(submit(bench.task("t_stale"))),
        store.commit(bench.ending(stale)),
        store.commit(replace(doubled, notices=second)),
        store.commit(submit(last)),
        return_exceptions=True,
    )
    done = [isinstance(result, Committed) and result.result is CommitResult.DONE for result in results]
    same(done, [True, False, False, False, True], "what was written")
    same((await store.load("t_first"), await store.load("t_last")), (first, last), "the good neighbours")


async def a_run_has_one_notice(store: Store) -> None:
    bench = StoreFixture(store)
    (task,) = await bench.ended("t_a")
    forced: Committed | None = None
    with suppress(Exception):  # a conflict or an error: how it is refused is the store's own
        forced = await store.commit(
            replace(amend(task, bench.tick()), notices=(Draft(task.thread, bench.now),))
        )
    assert forced is None or forced.result is not CommitResult.DONE, "a run ended twice"
    same(await bench.states(), {"t_a.1": "unread"}, "the notices")
    same(await store.load("t_a"), task, "the task: all of a change is written, or nothing")
    await bench.ended("t_b")
    same([n.number for n in await store.notices("a", NoticeState, MANY)], [1, 2], "the numbers: no gap")


async def a_cancelled_commit_still_lands(store: Store) -> None:
    bench = StoreFixture(store)
    for place, steps in enumerate((0, 1, 2)):
        task = bench.task(f"t_{place}")
        waiter = asyncio.ensure_future(store.commit(submit(task)))
        for _ in range(steps):
            await asyncio.sleep(0)
        waiter.cancel()
        with suppress(asyncio.CancelledError):
            await waiter
        await bench.start(f"t_after{place}")  # a commit that was handed in later is later
        same(await store.load(task.id), task, f"a commit cancelled after {steps} steps")


async def a_resume_archives_the_run(store: Store) -> None:
    bench = StoreFixture(store)
    (first,) = await bench.ended("t_a")
    second = await bench.end(await bench.resume(first), Failed("second"))
    third = await bench.resume(second)
    same(list(await store.runs("t_a")), [first, second], "the earlier runs, oldest first")
    same(await store.load("t_a"), third, "the live task")
    same(list(await store.runs("t_nobody")), [], "the runs of nobody")
    told = await bench.lease("turn")
    same(ids(told), ["t_a.1", "t_a.2"], "a notice for each run")
    same([notice.task for notice in told], [first, second], "each as its run left it")


CHECKS: tuple[Check, ...] = (
    a_task_comes_back_as_it_was_written,
    a_stale_version_is_a_conflict,
    a_change_that_writes_nothing_writes_nothing,
    the_same_id_is_refused,
    the_same_tool_call_is_refused,
    numbers_have_no_gaps_and_follow_commits,
    a_failing_change_does_not_sink_its_neighbours,
    a_run_has_one_notice,
    a_cancelled_commit_still_lands,
    a_resume_archives_the_run,
)
