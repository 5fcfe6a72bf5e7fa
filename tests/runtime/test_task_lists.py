"""I3, I8 to I11 and I14 of the matrix: waiting, lists, and whose they are."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from jobs import finished, start, take_turn
from meantime import (
    Agent,
    Call,
    InvalidInput,
    Meantime,
    NotFound,
    Status,
    StillRunning,
    TaskCancelled,
    TaskFailed,
    Thread,
)
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("I3")
@pytest.mark.embedded
async def test_a_wait_is_for_one_for_any_or_for_all(thread: Thread, clock: FakeClock) -> None:
    (first, one), (second, two), (third, three) = [await start(thread) for _ in range(3)]
    second.finish()
    statuses = [task.status for task in await thread.wait(one, two, three, until="any")]
    assert statuses == [Status.RUNNING, Status.COMPLETED, Status.RUNNING]
    waiting = asyncio.ensure_future(thread.wait(one, two, three))
    await clock.settle()
    first.finish()
    await one.wait()
    assert not waiting.done()
    third.finish()
    assert {task.status for task in await waiting} == {Status.COMPLETED}
    assert [task.id for task in await thread.wait(three, one)] == [three.id, one.id]


@pytest.mark.behaviour("I3")
@pytest.mark.embedded
async def test_wait_has_a_timeout(thread: Thread, clock: FakeClock) -> None:
    """When it is over, the tasks come back as they are, and go on."""
    job, handle = await start(thread)
    waiting = asyncio.ensure_future(handle.wait(timeout=5))
    await clock.advance_to_alarm(5)
    assert (await waiting).status is Status.RUNNING
    assert (await handle.wait(timeout=0)).status is Status.RUNNING
    job.finish()
    assert (await handle.wait()).status is Status.COMPLETED


@pytest.mark.behaviour("I3")
@pytest.mark.embedded
async def test_the_same_task_twice_is_waited_for_once(thread: Thread, clock: FakeClock) -> None:
    job, handle = await start(thread)
    waiting = asyncio.ensure_future(thread.wait(handle, handle.id, until="any"))
    await clock.settle()
    assert not waiting.done()
    job.finish()
    assert {task.status for task in await waiting} == {Status.COMPLETED}


@pytest.mark.behaviour("I3")
async def test_a_wait_gives_the_result_or_raises_the_ending(thread: Thread) -> None:
    failed = await finished(thread, OSError("no"))
    _, cancelled = await start(thread)
    await cancelled.cancel()
    job, running = await start(thread)
    with pytest.raises(TaskFailed) as problem:
        await failed.result()
    assert problem.value.task.id == failed.id
    with pytest.raises(TaskCancelled):
        await cancelled.result()
    with pytest.raises(StillRunning, match="still running"):
        await running.result(timeout=0)
    job.finish()


@pytest.mark.behaviour("I8")
async def test_a_list_shows_active_tasks_by_default_or_those_of_named_statuses(
    mt: Meantime, thread: Thread
) -> None:
    """Active by default, by statuses, all; newest first; paged; a person's list is of all."""
    ended = [(await finished(thread)).id for _ in range(3)]
    job, running = await start(thread)
    assert [task.id for task in await thread.list()] == [running.id]
    assert [task.id for task in await thread.list("completed")] == ended[::-1]
    assert [task.id for task in await thread.list("all")] == [running.id, *ended[::-1]]
    assert [task.id for task in await thread.list("all", limit=2, offset=1)] == [ended[2], ended[1]]
    assert {task.id for task in await mt.list()} == {running.id, *ended}
    assert [task.id for task in await mt.list("running", thread="conv-1")] == [running.id]
    bad: dict[str, Any]
    for bad in ({"limit": 0}, {"limit": 5_000}, {"offset": -1}):
        with pytest.raises(InvalidInput):
            await thread.list("all", **bad)
    job.finish()


@pytest.mark.behaviour("I9", "R13")
async def test_a_thread_lists_only_its_own_tasks(mt: Meantime, thread: Thread) -> None:
    handle = await finished(thread)
    other = mt.thread("other")
    assert await other.list("all") == []
    assert await other.list("all", history=True) == []
    assert await other.reminder() == ""
    assert await other.clear() == 0
    assert [task.id for task in await mt.list("all")] == [handle.id]


@pytest.mark.behaviour("I10")
async def test_wrong_thread_is_the_canonical_not_found(mt: Meantime, thread: Thread) -> None:
    """Every verb that names a task; it reads as if the task never was."""
    job, handle = await start(thread)
    other = mt.thread("other")
    for verb in (other.get, other.output, other.wait, other.result, other.cancel, other.runs, other.clear):
        with pytest.raises(NotFound, match=f"No task '{handle.id}' in this thread."):
            await verb(handle.id)
    with pytest.raises(NotFound):
        await other.resume(handle.id, "go on")
    async with other.turn() as turn:
        with pytest.raises(NotFound):
            await turn.output(handle.id)
    job.finish()


@pytest.mark.behaviour("I11")
async def test_resumed_and_forked_are_marked(thread: Thread) -> None:
    plain = await thread.start(Agent("reader", "one"))
    await plain.wait()
    forked = await thread.start(Agent("reader", "one"), fork=True)
    await forked.wait()
    await (await thread.resume(plain, "two")).wait()
    assert [(task.resumed, task.forked) for task in await thread.list("all")] == [
        (True, False),
        (False, True),
    ]


@pytest.mark.behaviour("I14", "R16")
async def test_only_the_newest_ended_tasks_stay_listed(thread: Thread) -> None:
    """The newest 20 endings and every untold one; an evicted id still answers."""
    ids = [(await finished(thread)).id for _ in range(22)]
    assert len(await thread.list("all")) == 22
    await take_turn(thread)
    assert [task.id for task in await thread.list("all")] == ids[:1:-1]
    assert (await thread.get(ids[0])).ended
    assert (await thread.output(ids[0])).value == "done"


async def test_a_list_is_as_new_as_the_last_event(tmp_path: Path) -> None:
    """The file has an ending before its owner hears of it. A view that asks for the last event, looks, and
    then waits for newer ones would show an ended task as running for ever."""
    path, gate = tmp_path / "work.db", asyncio.Event()
    async with Meantime.open(path) as mt:
        thread = mt.thread("conv-1")
        await thread.start(Call(gate.wait))
        runtime: Any = mt._runtime
        before = await runtime.last_event()
        gate.set()
        with closing(sqlite3.connect(path)) as beside:
            while not runtime.record._pending:  # noqa: ASYNC110  only some turns of the loop see it
                await asyncio.sleep(0)
            until(  # the loop stands still meanwhile
                lambda: beside.execute("SELECT max(seq) FROM events").fetchone()[0] > before,
                "the file has the ending",
            )
        assert await runtime.last_event() > before
        assert not await thread.list()
