"""Rows that a group of changes holds back until its end: nobody may see a difference."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from meantime.kernel.change import amend, submit
from meantime.ports.store import CommitResult
from meantime.stores.sqlite import commit, inbox_transactions
from meantime.stores.sqlite.deletion import delete_tasks
from meantime.stores.sqlite.store import SqliteStore
from meantime.testing.store.store_fixture import StoreFixture

pytestmark = pytest.mark.anyio
SOME = 64 + 16 + 4 + 3  # a statement of each size


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """What is handed in before the next tick of the loop is one group here."""
    made = SqliteStore(tmp_path / "ledger.db", durability="fast")
    await made.open()
    yield made
    await made.close()


async def test_a_lease_sees_the_endings_of_its_own_group(store: SqliteStore) -> None:
    bench = StoreFixture(store)
    first, second = await bench.start("t_first"), await bench.start("t_second")
    before = store.commit(bench.ending(first))
    leased = store._writer.submit(inbox_transactions.lease, "a", "turn", 10, 1.0)
    behind = store.commit(bench.ending(second))
    assert [notice.task.id for notice in await leased] == ["t_first"]
    assert [(await before).number, (await behind).number] == [1, 2]
    assert await store.unread() == {"a": 1}


async def test_the_rows_of_a_big_group_are_all_there_and_each_its_own(store: SqliteStore) -> None:
    bench = StoreFixture(store)
    tasks = [bench.task(f"t_{at}") for at in range(SOME)]
    await asyncio.gather(*(store.commit(submit(task)) for task in tasks))
    ended = await asyncio.gather(*(store.commit(bench.ending(task)) for task in tasks))
    assert [one.number for one in ended] == list(range(1, SOME + 1))
    assert [one.seq for one in ended] == list(range(SOME + 1, 2 * SOME + 1))
    events = await store.events(0, 10 * SOME)
    assert [event.seq for event in events] == list(range(1, 2 * SOME + 1))
    assert [event.task_id for event in events[SOME:]] == [task.id for task in tasks]
    notices = await store.lease("a", "turn", 10 * SOME, 1.0)
    assert [notice.task.id for notice in notices] == [task.id for task in tasks]
    assert len({notice.nonce for notice in notices}) == SOME


async def test_a_group_needs_few_statements(store: SqliteStore) -> None:
    bench = StoreFixture(store)
    tasks = [bench.task(f"t_{at}") for at in range(SOME)]
    statements: list[str] = []
    store._writer._db.set_trace_callback(statements.append)
    await asyncio.gather(*(store.commit(submit(task)) for task in tasks))
    await asyncio.gather(*(store.commit(bench.ending(task)) for task in tasks))
    store._writer._db.set_trace_callback(None)
    for begins in ("INSERT INTO tasks", "UPDATE tasks"):
        assert len([one for one in statements if one.startswith(begins)]) == len((64, 16, 4, 1, 1, 1))


async def test_a_refused_row_costs_its_neighbours_nothing(store: SqliteStore) -> None:
    """All of them are written again, each by a statement of its own, and each is answered for itself."""
    bench = StoreFixture(store)
    tasks = [await bench.start(f"t_{at}") for at in range(SOME)]
    await store.commit(amend(tasks[3], 2.0, description="it has moved on"))
    before = len(await store.events(0, 10 * SOME))
    endings = [store.commit(bench.ending(task)) for task in tasks]
    taken, free = store.commit(submit(bench.task("t_5"))), store.commit(submit(bench.task("t_free")))
    ended = await asyncio.gather(*endings)
    assert [at for at, one in enumerate(ended) if one.result is CommitResult.CONFLICT] == [3]
    assert [one.number for one in ended if one.number] == list(range(1, SOME))
    assert (await taken).result is CommitResult.SAME_ID
    assert (await free).result is CommitResult.DONE
    events = await store.events(before, 10 * SOME)
    assert [event.seq for event in events] == list(range(before + 1, before + SOME + 1))
    counts = await store.counts()
    assert (counts["completed"], counts["running"]) == (SOME - 1, 2)


async def test_of_two_changes_of_a_task_in_one_group_the_first_wins(store: SqliteStore) -> None:
    bench = StoreFixture(store)
    one, other = await bench.start("t_one"), await bench.start("t_other")
    progress = store.commit(amend(one, 2.0, description="it goes on"))
    ending, neighbour = store.commit(bench.ending(one)), store.commit(bench.ending(other))
    assert (await progress).result is CommitResult.DONE
    assert (await ending).result is CommitResult.CONFLICT
    assert (await neighbour).number == 1
    found = await store.load("t_one")
    assert found is not None
    assert (found.description, found.ended) == ("it goes on", False)


async def test_a_purge_is_an_event_behind_those_of_its_group(store: SqliteStore) -> None:
    bench = StoreFixture(store)
    (gone,) = await bench.ended("t_gone")
    going = await bench.start("t_going")
    ending = store.commit(bench.ending(going))
    purging = store._writer.submit(delete_tasks, store._changes, "delete_ended", [gone.id], 2.0)
    assert await purging == [gone.id]
    assert (await ending).result is CommitResult.DONE
    kinds = [(event.task_id, event.kind) for event in await store.events(0, 10)]
    assert kinds[-2:] == [("t_going", "ended"), ("t_gone", "purged")]


async def test_a_group_that_fails_leaves_nothing_behind(store: SqliteStore) -> None:
    """Replayed one by one, the neighbours of the failing one have the numbers that are next."""
    bench = StoreFixture(store)
    task, other = await bench.start("t_a"), await bench.start("t_other")
    change = bench.ending(task)

    def fails(*_: object) -> None:
        raise ValueError("a failing neighbour")

    good, bad = store.commit(change), store._writer.submit(fails)
    behind = store.commit(bench.ending(other))
    with pytest.raises(ValueError, match="a failing neighbour"):
        await bad
    assert [(await good).number, (await behind).number] == [1, 2]
    assert [event.seq for event in await store.events(0, 10)] == [1, 2, 3, 4]
    assert await store.unread() == {"a": 2}


async def test_a_task_whose_row_is_not_remembered_is_told_of_too(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "MAX_PLACES", 0)
    bench = StoreFixture(store)
    task = await bench.start("t_a")
    assert (await store.commit(bench.ending(task))).result is CommitResult.DONE
    assert [notice.task.id for notice in await store.lease("a", "turn", 10, 1.0)] == ["t_a"]
