"""The conformance suite of the Store port: one small check per sentence of its contract.

A store of your own passes when `await exercise_store(lambda: MyStore(...))` returns. With a test
runner, parametrize over `STORE_CHECKS` instead and hand each one a fresh store that is open.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec.structs import replace

from meantime.kernel.change import Change, Facts, amend, decide, ending, submit
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.model import (
    Cancelled,
    Completed,
    Failed,
    InlineLimits,
    Lost,
    Outcome,
    Progress,
    Run,
    Spill,
    Task,
    TimedOut,
    Work,
)  # fmt: skip
from meantime.kernel.notices import Message, Notice, NoticeState, Part
from meantime.kernel.retention import Retention
from meantime.ports.store import CommitResult, Committed, Entry, Query, Store

Check: TypeAlias = Callable[[Store], Awaitable[None]]
MANY = 1_000
PARKS = 5  # failures that park, in checks that are not about parking
OPEN_STATES = (NoticeState.UNREAD, NoticeState.LEASED, NoticeState.PARKED)


async def exercise_store(make: Callable[[], Store]) -> None:
    """Runs every check on a fresh store; the first that fails is named in the AssertionError."""
    for check in STORE_CHECKS:
        name = getattr(check, "__name__", repr(check))
        store = make()
        await store.open()
        try:
            await check(store)
        except Exception as problem:
            raise AssertionError(f"{name}: {problem or type(problem).__name__}") from problem
        finally:
            await store.close()


class Bench:
    """Makes the changes that a runtime would make, one second after another."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = 1_000.0

    def tick(self) -> float:
        self.now += 1.0
        return self.now

    def task(self, id: str, thread: str = "a", **fields: Any) -> Task:
        at = self.tick()
        run = Run(queued_at=at, started_at=at)
        work = Work("call", "tests:work")
        return Task(
            id=id, thread=thread, work=work, status=Status.RUNNING, created_at=at, updated_at=at, run=run,
            **fields,
        )  # fmt: skip

    def ending(self, task: Task, outcome: Outcome | None = None) -> Change:
        outcome = outcome or Completed(f"result of {task.id}")
        return decide(task, ending(outcome), Facts(outcome=outcome), self.tick())

    def resuming(self, task: Task) -> Change:
        run = Run(number=task.run.number + 1, queued_at=self.tick(), prompt="go on")
        return decide(task, Move.RESUME, Facts(next_run=run), self.now)

    async def write(self, change: Change) -> Committed:
        """Commits what must succeed."""
        committed = await self.store.commit(change)
        assert committed.result is CommitResult.DONE, f"a change in order was refused: {committed}"
        return committed

    async def start(self, id: str, thread: str = "a", **fields: Any) -> Task:
        task = self.task(id, thread, **fields)
        await self.write(submit(task))
        return task

    async def end(self, task: Task, outcome: Outcome | None = None) -> Task:
        change = self.ending(task, outcome)
        await self.write(change)
        return change.task

    async def ended(self, *ids: str, thread: str = "a", **fields: Any) -> list[Task]:
        return [await self.end(await self.start(id, thread, **fields)) for id in ids]

    async def resume(self, task: Task) -> Task:
        """Into its next run, and started."""
        change = self.resuming(task)
        await self.write(change)
        started = decide(change.task, Move.START, Facts(), self.tick())
        await self.write(started)
        return started.task

    async def hide(self, task: Task) -> Task:
        change = amend(task, self.tick(), hidden=True)
        await self.write(change)
        return change.task

    async def lease(self, turn: str, thread: str = "a", limit: int = MANY) -> Sequence[Notice]:
        return await self.store.lease(thread, turn, limit, self.tick())

    async def settle(self, turn: str, *ids: str, thread: str = "a", entries: Sequence[Entry] = ()) -> Any:
        return await self.store.settle(thread, turn, ids, entries, self.tick())

    async def fail(self, turn: str, thread: str = "a", parks_after: int = PARKS) -> Sequence[str]:
        return await self.store.release(thread, turn, failed=True, parks_after=parks_after)

    async def give_back(self, turn: str, thread: str = "a") -> Sequence[str]:
        return await self.store.release(thread, turn, failed=False, parks_after=PARKS)

    async def tell(self, thread: str = "a") -> None:
        """Everything unread of a thread is told, whatever it takes."""
        while await self.lease("teller", thread):
            await self.settle("teller", thread=thread)

    async def states(self, thread: str | None = "a") -> dict[str, str]:
        found = await self.store.notices(thread, NoticeState, MANY)
        return {notice.id: notice.state.value for notice in found}


def ids(found: Iterable[Task | Notice]) -> list[str]:
    return [one.id for one in found]


def same(got: object, wanted: object, what: str) -> None:
    assert got == wanted, f"{what}: {got!r} instead of {wanted!r}"


def said(text: str, notice: str | None = None) -> Entry:
    return Entry(Message("user", (Part(text),)), notice)


# -- committing


async def a_task_comes_back_as_it_was_written(store: Store) -> None:
    bench = Bench(store)
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
    bench = Bench(store)
    task = await bench.start("t_a")
    first, second = bench.ending(task, Completed("first")), bench.ending(task, Failed("second"))
    await bench.write(first)
    events = await store.events(0, MANY)
    same((await store.commit(second)).result, CommitResult.CONFLICT, "the second ending")
    same(await store.load(task.id), first.task, "the task after a conflict")
    same(await store.events(0, MANY), events, "the journal after a conflict")
    same(ids(await store.notices("a", NoticeState, MANY)), ["t_a.1"], "the notices after a conflict")
    other = await bench.start("t_b")
    newer, older = (amend(other, bench.tick(), description=text) for text in ("newer", "older"))
    await bench.write(newer)
    same((await store.commit(older)).result, CommitResult.CONFLICT, "an older change that is no move")
    same(await store.load("t_b"), newer.task, "the newer change")
    unknown = amend(bench.task("t_unknown"), bench.tick(), description="?")
    same((await store.commit(unknown)).result, CommitResult.CONFLICT, "a change of a task that is not there")
    same(await store.load("t_unknown"), None, "the task that is not there")


async def a_change_that_writes_nothing_writes_nothing(store: Store) -> None:
    bench = Bench(store)
    (task,) = await bench.ended("t_a")
    again = bench.ending(task)
    assert not again.writes, "the kernel must see that it has ended"
    before = (await store.events(0, MANY), await bench.states())
    await store.commit(again)
    same(await store.load(task.id), task, "the task")
    same((await store.events(0, MANY), await bench.states()), before, "the journal and the notices")


async def the_same_id_is_refused(store: Store) -> None:
    bench = Bench(store)
    task = await bench.start("t_a", description="first")
    again = await store.commit(submit(bench.task("t_a", "other", description="second")))
    same((again.result, again.existing), (CommitResult.SAME_ID, "t_a"), "the same id again")
    same(await store.load("t_a"), task, "the task that was there")
    same(len(await store.events(0, MANY)), 1, "events")


async def the_same_tool_call_is_refused(store: Store) -> None:
    bench = Bench(store)
    await bench.start("t_a", tool_call_id="call")
    again = await store.commit(submit(bench.task("t_b", tool_call_id="call")))
    same((again.result, again.existing), (CommitResult.SAME_CALL, "t_a"), "the same tool call again")
    same(await store.load("t_b"), None, "the refused task")
    await bench.start("t_c", "other", tool_call_id="call")
    await bench.start("t_d")
    await bench.start("t_e")  # no tool call is not the same tool call


async def numbers_have_no_gaps_and_follow_commits(store: Store) -> None:
    """Many commits at once over several threads, every fourth of them stale."""
    bench = Bench(store)
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
    bench = Bench(store)
    first, last, stale = bench.task("t_first"), bench.task("t_last"), await bench.start("t_stale")
    await bench.end(stale)
    doubled = amend(await _loaded(store, "t_stale"), bench.tick())
    results = await asyncio.gather(
        store.commit(submit(first)),
        store.commit(submit(bench.task("t_stale"))),
        store.commit(bench.ending(stale)),
        store.commit(replace(doubled, ends=True)),  # a second notice for one run: nothing may take this
        store.commit(submit(last)),
        return_exceptions=True,
    )
    done = [isinstance(result, Committed) and result.result is CommitResult.DONE for result in results]
    same(done, [True, False, False, False, True], "what was written")
    same((await store.load("t_first"), await store.load("t_last")), (first, last), "the good neighbours")


async def a_run_has_one_notice(store: Store) -> None:
    bench = Bench(store)
    (task,) = await bench.ended("t_a")
    forced: Committed | None = None
    with suppress(Exception):  # a conflict or an error: how it is refused is the store's own
        forced = await store.commit(replace(amend(task, bench.tick()), ends=True))
    assert forced is None or forced.result is not CommitResult.DONE, "a run ended twice"
    same(await bench.states(), {"t_a.1": "unread"}, "the notices")
    same(await store.load("t_a"), task, "the task: all of a change is written, or nothing")
    await bench.ended("t_b")
    same([n.number for n in await store.notices("a", NoticeState, MANY)], [1, 2], "the numbers: no gap")


async def a_cancelled_commit_still_lands(store: Store) -> None:
    bench = Bench(store)
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
    bench = Bench(store)
    (first,) = await bench.ended("t_a")
    second = await bench.end(await bench.resume(first), Failed("second"))
    third = await bench.resume(second)
    same(list(await store.runs("t_a")), [first, second], "the earlier runs, oldest first")
    same(await store.load("t_a"), third, "the live task")
    same(list(await store.runs("t_nobody")), [], "the runs of nobody")
    told = await bench.lease("turn")
    same(ids(told), ["t_a.1", "t_a.2"], "a notice for each run")
    same([notice.task for notice in told], [first, second], "each as its run left it")


# -- reading tasks


async def active_tasks_oldest_first(store: Store) -> None:
    bench = Bench(store)
    for id in ("t_3", "t_1", "t_2"):
        await bench.start(id)
    (again, *_) = await bench.ended("t_0", "t_9")
    await bench.resume(again)
    await bench.write(decide(await _loaded(store, "t_1"), Move.CANCEL, Facts(by="user"), bench.tick()))
    found = ids(await store.active())
    same(sorted(found), ["t_0", "t_1", "t_2", "t_3"], "the active tasks")
    same([id for id in found if id != "t_0"], ["t_3", "t_1", "t_2"], "their order")


async def lists_are_newest_first_and_filtered(store: Store) -> None:
    bench = Bench(store)
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
    bench = Bench(store)
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
    bench = Bench(store)
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
    everything = [
        await _loaded(store, id) for id in ("t_muted2", "t_muted1", "t_unread", "t_first", "t_second")
    ]
    same(list(await store.hot("a", 20)), everything, "the tasks as they are")


async def hot_leaves_out_what_is_cleared(store: Store) -> None:
    bench = Bench(store)
    old, middle, _ = await bench.ended("t_old", "t_middle", "t_new")
    await bench.hide(middle)
    same(ids(await store.hot("a", 2)), ["t_new", "t_old"], "cleared ones are left out and take no place")
    await bench.lease("turn", limit=1)
    same(ids(await store.hot("a", 0)), ["t_new", "t_old"], "a leased one is untold")
    await bench.fail("turn", parks_after=1)
    same((await bench.states())["t_old.1"], "parked", "the state of t_old.1")
    same(ids(await store.hot("a", 0)), ["t_new", "t_old"], "a parked one is untold")
    await bench.end(await bench.resume(old))
    same(ids(await store.hot("a", 20)), ["t_old", "t_new"], "one entry a task, at its newest ending")


async def counts_count(store: Store) -> None:
    bench = Bench(store)
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
    bench = Bench(store)
    same(await store.batch("b"), None, "an unknown batch")
    tasks = [await bench.start(f"t_{n}", batch="b") for n in range(4)]
    await bench.start("t_other", batch="c")
    await bench.end(tasks[0])
    ended = await bench.end(tasks[1], Failed("no"))
    await bench.end(tasks[2])
    count = await store.batch("b")
    assert count is not None, "the batch is not there"
    same((count.id, count.ended, count.total, count.failed), ("b", 3, 4, 1), "the count")
    told = await bench.lease("turn")
    counts = [notice.batch and (notice.batch.ended, notice.batch.total) for notice in told]
    same(counts, [(1, 4), (2, 4), (3, 4)], "each its count, up to now")
    await bench.resume(ended)
    count = await store.batch("b")
    same(count and (count.ended, count.total, count.failed), (2, 4, 0), "the count after a resume")
    await bench.ended("t_alone", thread="z")
    same([notice.batch for notice in await bench.lease("turn", "z")], [None], "a task without a batch")


# -- telling


async def leases_are_in_order_and_exclusive(store: Store) -> None:
    bench = Bench(store)
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
    same(ids(await bench.lease("one")), ["t_3.1"], "the same turn goes on")
    same(ids(await bench.lease("one")), [], "nothing is left")
    await bench.settle("one", "t_2.1", "t_1.1")
    await bench.ended("t_4")
    same(ids(await bench.lease("two")), [], "the other turn still holds one")
    await bench.settle("one")
    same(ids(await bench.lease("two")), ["t_4.1"], "it holds none")
    same(ids(await bench.lease("turn", "nobody")), [], "an unknown thread")


async def a_notice_that_was_not_settled_comes_again(store: Store) -> None:
    bench = Bench(store)
    await bench.ended("t_1", "t_2")
    first = await bench.lease("one")
    same(set(await bench.give_back("one")), {"t_1.1", "t_2.1"}, "what was given back")
    same(list(await bench.give_back("one")), [], "a second release")
    await bench.ended("t_3")
    again = await bench.lease("two")
    same(ids(again), ["t_1.1", "t_2.1", "t_3.1"], "in the same order, before what came later")
    same([notice.delivery for notice in again], [2, 2, 1], "how often each was delivered")
    same([n.nonce for n in again[:2]], [n.nonce for n in first], "the nonces stay")
    same(await store.read("two", "t_1", 1, bench.tick()), True, "reading what it holds")
    await bench.give_back("two")
    same([n.delivery for n in await bench.lease("three")], [3, 3, 2], "reading what it holds is no delivery")


async def what_failed_twice_is_leased_alone(store: Store) -> None:
    bench = Bench(store)
    await bench.ended("t_1", "t_2", "t_3", "t_4")
    await bench.lease("one", limit=2)
    await bench.settle("one", "t_1.1")
    await bench.fail("one")  # t_2 failed once
    same(ids(await bench.lease("two")), ["t_2.1", "t_3.1", "t_4.1"], "once is no reason")
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
    bench = Bench(store)
    await bench.ended("t_1", "t_2", "t_3")
    for _ in range(2):  # only the second one fails: the first is read elsewhere and given back unharmed
        await store.read("reader", "t_2", 1, bench.tick())
        await bench.fail("reader")
    same(ids(await bench.lease("one")), ["t_1.1"], "it stops before it")
    await bench.settle("one")
    same(ids(await bench.lease("two")), ["t_2.1"], "then it alone")
    await bench.settle("two")
    same(ids(await bench.lease("three")), ["t_3.1"], "then the rest")


async def too_many_failures_park(store: Store) -> None:
    bench = Bench(store)
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


async def giving_back_is_no_failure(store: Store) -> None:
    bench = Bench(store)
    await bench.ended("t_1", "t_2")
    for _ in range(PARKS + 1):
        same(ids(await bench.lease("turn")), ["t_1.1", "t_2.1"], "all of them, every time")
        await bench.give_back("turn")
    same(await bench.states(), {"t_1.1": "unread", "t_2.1": "unread"}, "the states")


async def muted_endings_are_never_told(store: Store) -> None:
    bench = Bench(store)
    await bench.ended("t_1", notify=False)
    await bench.ended("t_2")
    same(await bench.states(), {"t_1.1": "muted", "t_2.1": "unread"}, "the states")
    same([(n.id, n.number) for n in await bench.lease("turn")], [("t_2.1", 2)], "it took number 1")
    await bench.fail("turn", parks_after=1)
    await store.unpark("a")
    same((await bench.states())["t_1.1"], "muted", "it stays muted")
    same(dict(await store.unread()), {"a": 1}, "it is not unread")


async def settling_tells_and_writes_the_transcript(store: Store) -> None:
    bench = Bench(store)
    await bench.ended("t_1", "t_2", "t_3")
    await store.append("a", [said("hello"), said("early", "t_2.1")])
    await bench.lease("turn")
    entries = [said("one", "t_1.1"), said("two", "t_2.1"), said("größe 漢字"), said("one again", "t_1.1")]
    settled = await bench.settle("turn", "t_1.1", "t_2.1", entries=entries)
    same((set(settled.told), settled.gone), ({"t_1.1", "t_2.1"}, ()), "what was settled")
    same(await bench.states(), {"t_1.1": "told", "t_2.1": "told", "t_3.1": "leased"}, "the states")
    kept = await store.transcript("a")
    texts = [entry.message.text for entry in kept]
    same(texts, ["hello", "early", "one", "größe 漢字"], "the transcript, nothing doubled")
    same([entry.notice for entry in kept], [None, "t_2.1", "t_1.1", None], "the notices of the transcript")
    positions = [entry.position for entry in kept]
    same(positions, sorted(set(positions)), "positions that go up")
    same((await bench.settle("turn")).told, ("t_3.1",), "no ids settle all that it holds")
    await bench.tell()
    same(dict(await store.unread()), {}, "what is unread")
    same(ids(await bench.lease("later")), [], "what was told is not told again")


async def settling_twice_is_harmless(store: Store) -> None:
    bench = Bench(store)
    await bench.ended("t_1")
    await bench.lease("turn")
    for _ in range(2):
        settled = await bench.settle("turn", "t_1.1", entries=[said("one", "t_1.1")])
        same((settled.told, settled.gone), (("t_1.1",), ()), "told by this same turn")
    same(len(await store.transcript("a")), 1, "entries")
    same((await bench.settle("other", "t_1.1")).gone, ("t_1.1",), "told by another turn")


async def what_a_turn_lost_is_gone(store: Store) -> None:
    bench = Bench(store)
    await bench.ended("t_1", "t_2")
    await bench.lease("one")
    await bench.give_back("one")
    same((await bench.settle("one", "t_1.1")).gone, ("t_1.1",), "back in the inbox")
    same((await bench.states())["t_1.1"], "unread", "it was not told")
    await bench.lease("two", limit=1)
    settled = await bench.settle("one", "t_1.1", "t_2.1", "t_nobody.1")
    same((settled.told, set(settled.gone)), ((), {"t_1.1", "t_2.1", "t_nobody.1"}), "leased by somebody else")
    same(await bench.states(), {"t_1.1": "leased", "t_2.1": "unread"}, "the states")
    same((await bench.settle("one")).told, (), "a turn that holds nothing settles nothing")
    same(list(await bench.give_back("one")), [], "and gives nothing back")
    same((await bench.settle("two", "t_1.1")).told, ("t_1.1",), "the other turn's lease stands")
    await bench.lease("elsewhere", "b")
    same((await bench.settle("two", "t_2.1", thread="b")).gone, ("t_2.1",), "not in that thread")


async def reading_an_ending_leases_its_notice(store: Store) -> None:
    bench = Bench(store)
    await bench.ended("t_1", "t_2", "t_3")
    same(await store.read("one", "t_2", 1, bench.tick()), True, "reading an unread ending")
    same(await store.read("one", "t_2", 1, bench.tick()), True, "reading it again")
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


async def reading_a_parked_ending_leases_it_too(store: Store) -> None:
    bench = Bench(store)
    await bench.ended("t_1")
    await bench.lease("one")
    await bench.fail("one", parks_after=1)
    same(await store.read("two", "t_1", 1, bench.tick()), True, "it is neither told nor leased elsewhere")
    same((await bench.settle("two")).told, ("t_1.1",), "and its ack settles it")


async def notices_are_listed_by_state(store: Store) -> None:
    bench = Bench(store)
    (first, *_) = await bench.ended("t_1", "t_2", "t_3", batch="b")
    await bench.ended("t_else", thread="b")
    await bench.lease("turn", limit=2)
    await bench.settle("turn", "t_1.1")

    async def listed(thread: str | None, *states: NoticeState, limit: int = MANY) -> list[str]:
        return ids(await store.notices(thread, states, limit))

    same(await listed("a", NoticeState.UNREAD), ["t_3.1"], "unread")
    same(await listed("a", *OPEN_STATES), ["t_2.1", "t_3.1"], "untold, by number")
    same(await listed("a", *NoticeState, limit=2), ["t_1.1", "t_2.1"], "up to the limit")
    same(await listed("a"), [], "no state")
    same(set(await listed(None, NoticeState.UNREAD)), {"t_3.1", "t_else.1"}, "of every thread")
    same(await listed("nobody", *NoticeState), [], "an unknown thread")
    (told,) = await store.notices("a", [NoticeState.TOLD], MANY)
    same((told.task, told.number, told.state, told.delivery), (first, 1, NoticeState.TOLD, 1), "the notice")
    same(dict(await store.unread()), {"a": 1, "b": 1}, "unread by thread")


async def what_nobody_claims_is_parked_and_comes_back(store: Store) -> None:
    bench = Bench(store)
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
    same(await store.park_unclaimed(before), 2, "the notices that nobody claimed")
    same(await store.park_unclaimed(before), 0, "parking again")
    same(await bench.states(), {"t_1.1": "parked", "t_2.1": "parked"}, "they are parked, visibly")
    same(dict(await store.unread()), {"claimed": 1, "fresh": 1}, "what is claimed or fresh stays unread")
    same(ids(await bench.lease("back")), ["t_1.1", "t_2.1"], "the next lease brings them back")
    same(ids(await bench.lease("back", "b")), [], "what failed stays parked until it is unparked")
    await bench.give_back("back")
    same(dict(await store.unread())["a"], 2, "they are as unread as before")


async def a_restart_counts_every_lease_as_a_failure(store: Store) -> None:
    bench = Bench(store)
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


# -- transcript, journal, upkeep, files


async def transcripts_are_kept_by_thread(store: Store) -> None:
    await store.append("a", [said("one", "t_1.1"), said("two"), said("two")])
    await store.append("b", [said("other", "t_1.1")])
    await store.append("a", [])
    await store.append("a", [said("again", "t_1.1"), said("three")])
    texts = [entry.message.text for entry in await store.transcript("a")]
    same(texts, ["one", "two", "two", "three"], "the transcript")
    same([e.message for e in await store.transcript("b")], [said("other").message], "of the other thread")
    same(list(await store.transcript("nobody")), [], "of nobody")
    same(await store.has_entry("a", "t_1.1"), True, "an entry that is there")
    same(await store.has_entry("a", "t_2.1"), False, "an entry that is not")
    same(await store.has_entry("nobody", "t_1.1"), False, "an entry of another thread")


async def events_are_in_commit_order(store: Store) -> None:
    bench = Bench(store)
    same(list(await store.events(0, MANY)), [], "an empty journal")
    task = bench.task("t_a")
    seqs = [(await bench.write(submit(task))).seq]
    silent = amend(task, bench.tick(), progress=Progress(50.0))
    same((await bench.write(silent)).seq, 0, "a change without an event")
    loud = amend(silent.task, bench.tick(), event="cleared", hidden=True)
    seqs.append((await bench.write(loud)).seq)
    last = bench.ending(loud.task)
    seqs.append((await bench.write(last)).seq)
    found = await store.events(0, MANY)
    same([event.seq for event in found], seqs, "the sequence numbers the commits gave")
    same(seqs, sorted(set(seqs)), "sequence numbers that go up")
    assert seqs[0] > 0, "a sequence starts above 0, so that `after=0` is the beginning"
    same([event.kind for event in found], ["submitted", "cleared", "ended"], "the kinds")
    assert last.event is not None, "an ending has an event"
    same(replace(found[-1], seq=0), last.event, "the event as it was written")
    same(await store.events(seqs[0], 1), found[1:2], "after a number, up to the limit")
    same(list(await store.events(seqs[-1], MANY)), [], "after the last")


async def forgetting_spares_what_was_not_told(store: Store) -> None:
    bench = Bench(store)
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
    same(list(await store.events(0, MANY)), [], "a journal of no events")
    same(ids(await store.hot("b", 20)), [], "the listing of a forgotten thread")
    untold = {"t_again.1", "t_parked.1", "t_leased.1", "t_unread.1"}
    same(set(ids(await store.notices(None, OPEN_STATES, MANY))), untold, "the untold notices")
    written = await bench.write(submit(bench.task("t_new")))
    same([event.seq for event in await store.events(0, MANY)], [written.seq], "the journal goes on")


async def forgetting_takes_what_is_too_old_or_too_many(store: Store) -> None:
    bench = Bench(store)
    for n in range(6):
        await bench.ended(f"t_{n}", tool_call_id=f"call{n}")
        bench.now += 100.0
    await bench.tell()
    keep_all = Retention(history_seconds=1e6, history_tasks=MANY, journal_events=4)
    newest = [event.seq for event in await store.events(0, MANY)][-4:]
    same(await store.forget(keep_all, bench.now), 0, "nothing is too old or too many")
    same([event.seq for event in await store.events(0, MANY)], newest, "the journal keeps its newest")
    same([event.seq for event in await store.events(newest[1], MANY)], newest[2:], "after a number, trimmed")
    same(await store.forget(Retention(history_seconds=450.0), bench.now), 2, "too old")
    same(ids(await store.list(Query())), ["t_5", "t_4", "t_3", "t_2"], "what is young enough")
    same(await store.forget(Retention(history_seconds=1e6, history_tasks=3), bench.now), 1, "too many")
    same(ids(await store.list(Query())), ["t_5", "t_4", "t_3"], "the newest")
    await bench.start("t_0", tool_call_id="call0")  # forgotten means forgotten: its keys are free
    ended = await bench.write(bench.ending(await _loaded(store, "t_0")))
    same(ended.number, 7, "completion numbers go on, they are never given twice")


async def purging_deletes_ended_tasks_for_good(store: Store) -> None:
    bench = Bench(store)
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
    bench = Bench(store)
    for n in range(10):
        (task,) = await bench.ended(f"t_{n}")
        resumed = store.commit(bench.resuming(task))
        purged = await store.purge([task.id])
        if (await resumed).result is CommitResult.DONE:
            same(purged, 0, "what was purged")
            assert await store.load(task.id) is not None, "a task that runs again was purged"


async def forgetting_never_takes_a_task_that_runs_again(store: Store) -> None:
    """As with a purge: what was decided on must still be so when it is deleted."""
    bench = Bench(store)
    everything = Retention(history_seconds=0.0, history_tasks=0)
    for n in range(10):
        (task,) = await bench.ended(f"t_{n}")
        await bench.tell()
        resumed = store.commit(bench.resuming(task))
        await store.forget(everything, bench.now + 100.0)
        if (await resumed).result is CommitResult.DONE:
            assert await store.load(task.id) is not None, "a task that runs again was forgotten"


async def spilled_payloads_come_back(store: Store) -> None:
    payloads = ["größe 漢字 😀\r\n\x00".encode(), b"", bytes(range(256)) * 4_000]
    paths = await asyncio.gather(*(store.spill(payload) for payload in payloads))
    same(len(set(paths)), len(payloads), "a file for each")
    for path, payload in zip(paths, payloads, strict=True):
        assert await store.unspill(path) == payload, f"{path} came back changed"
        same(_open_to_others(path), 0, "the rights of others on the file")


async def _loaded(store: Store, id: str) -> Task:
    task = await store.load(id)
    assert task is not None, f"{id} is not there"
    return task


def _filled(counts: Any) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _exists(path: str) -> bool:
    return os.path.exists(path)


def _open_to_others(path: str) -> int:
    return os.stat(path).st_mode & 0o077


STORE_CHECKS: tuple[Check, ...] = (
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
    active_tasks_oldest_first,
    lists_are_newest_first_and_filtered,
    prefixes_find_tasks,
    hot_is_the_newest_and_the_untold,
    hot_leaves_out_what_is_cleared,
    counts_count,
    batches_are_counted,
    leases_are_in_order_and_exclusive,
    a_notice_that_was_not_settled_comes_again,
    what_failed_twice_is_leased_alone,
    a_lease_stops_before_what_failed_twice,
    too_many_failures_park,
    giving_back_is_no_failure,
    muted_endings_are_never_told,
    settling_tells_and_writes_the_transcript,
    settling_twice_is_harmless,
    what_a_turn_lost_is_gone,
    reading_an_ending_leases_its_notice,
    reading_a_parked_ending_leases_it_too,
    notices_are_listed_by_state,
    what_nobody_claims_is_parked_and_comes_back,
    a_restart_counts_every_lease_as_a_failure,
    transcripts_are_kept_by_thread,
    events_are_in_commit_order,
    forgetting_spares_what_was_not_told,
    forgetting_takes_what_is_too_old_or_too_many,
    purging_deletes_ended_tasks_for_good,
    purging_never_takes_a_task_that_runs_again,
    forgetting_never_takes_a_task_that_runs_again,
    spilled_payloads_come_back,
)
