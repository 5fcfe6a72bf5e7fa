"""A lost connection that comes back changes nothing: no call stopped, no turn stranded, nothing leaked."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT, stays_async, until_async

from meantime import Call, Meantime
from meantime.client.executor import Executor
from meantime.execution.context import WorkContext
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Progress, Task
from meantime.kernel.model import Run as Rounds
from meantime.link.frames import EndingAcknowledged, RunFrame
from meantime.runtime.submit import Submission
from runtimes import client_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Meantime]:
    async with Meantime.open(tmp_path / "work.db", link=tmp_path / "link") as owner:
        yield owner


@pytest.fixture
async def mt(owner: Meantime, tmp_path: Path) -> AsyncIterator[Meantime]:
    async with Meantime.connect(tmp_path / "link") as mt:
        yield mt


def connection(mt: Meantime) -> Any:
    return client_of(mt)._connection


async def cut(mt: Meantime) -> None:
    """Returns when it is connected again."""
    wire = connection(mt)._wire
    wire.abort()
    await until_async(
        lambda: connection(mt).is_up and connection(mt)._wire is not wire, "it is connected again"
    )


async def test_a_call_survives_a_cut_connection(mt: Meantime):
    ran: list[str] = []
    begun, gate = asyncio.Event(), asyncio.Event()

    async def work() -> str:
        ran.append("once")
        begun.set()
        await gate.wait()
        return "done"

    calling = asyncio.create_task(mt.thread("t").call(Call(work), threshold=None))
    await begun.wait()
    await cut(mt)
    await stays_async(lambda: ran == ["once"], "no stop and no second run comes")
    gate.set()
    answer = await asyncio.wait_for(calling, LIMIT)
    if answer.mode == "background":
        assert answer.task is not None
        (ended,) = await mt.thread("t").wait(answer.task.id, timeout=LIMIT)
        assert ended.status == "completed"
    else:
        assert answer.result == "done"
    assert ran == ["once"]


async def test_a_call_that_was_cut_leaves_nothing_behind(owner: Meantime, mt: Meantime):
    for _ in range(3):
        begun, gate = asyncio.Event(), asyncio.Event()

        async def work(begun: asyncio.Event = begun, gate: asyncio.Event = gate) -> None:
            begun.set()
            await gate.wait()

        calling = asyncio.create_task(mt.thread("t").call(Call(work), threshold=None))
        await begun.wait()
        await cut(mt)
        gate.set()
        await asyncio.wait_for(calling, LIMIT)
    (executor,) = owner._link.executors._known.values()
    await until_async(lambda: not executor.runs, "the owner waits for no run any more")
    waiting = [task for task in asyncio.all_tasks() if "_outlast" in repr(task.get_stack())]
    assert not waiting


async def test_a_turn_whose_answer_comes_too_late_is_given_back(owner: Meantime, mt: Meantime):
    await (await mt.thread("t").start(Call(sum, [1]))).wait()
    opening = asyncio.create_task(mt._runtime.open_turn("t", lease=None, limit=10))
    received = connection(mt)._received

    def cancelled_first(wire: Any, frame: Any) -> None:
        opening.cancel()  # in the same moment as the answer comes in
        connection(mt)._received = received
        asyncio.get_running_loop().call_later(0.01, received, wire, frame)

    connection(mt)._received = cancelled_first
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with asyncio.timeout(LIMIT):
        async for _ in mt.thread("t").wakeups():  # idle again, with its notice
            break
    async with mt.thread("t").turn() as turn:
        assert len(turn.notices) == 1


async def test_an_ending_is_said_again_when_it_is_asked_for(mt: Meantime):
    executor: Executor = mt._runtime._executor  # type: ignore[union-attr]
    heard: list[Any] = []
    gate = asyncio.Event()
    handle = await mt.thread("t").start(Call(gate.wait))
    executor.acknowledged = lambda frame: None  # type: ignore[method-assign]  the owner's word is lost
    gate.set()
    await handle.wait()
    executor._say = heard.append
    task = await mt.get(handle.id)
    executor.run(RunFrame(task, True, False))
    assert [type(frame).__name__ for frame in heard] == ["Ended"]
    del executor.acknowledged
    executor.acknowledged(EndingAcknowledged(task.id, (1, 1)))


async def test_a_start_that_is_still_on_its_way_is_not_started_again(
    mt: Meantime, owner: Meantime, monkeypatch: pytest.MonkeyPatch
):
    """The connection is cut while the ledger is slow: the same start is asked again meanwhile."""
    create = owner._runtime.record.create  # type: ignore[union-attr]
    slow, asked = asyncio.Event(), 0

    async def created(*args: Any) -> Any:
        creating = asyncio.ensure_future(_later(slow, lambda: create(*args)))
        return await asyncio.shield(creating)

    start = Submission.start

    async def counted(self: Submission, *args: Any) -> Any:
        nonlocal asked
        asked += 1
        return await start(self, *args)

    monkeypatch.setattr(owner._runtime.record, "create", created)  # type: ignore[union-attr]
    monkeypatch.setattr(Submission, "start", counted)
    starting = asyncio.create_task(mt.thread("t").start(Call(sum, [1, 2])))
    await until_async(lambda: asked == 1, "the start is asked for")
    await cut(mt)
    await until_async(lambda: asked >= 2, "the start is asked for again")
    await stays_async(lambda: not starting.done(), "both wait for the ledger")
    slow.set()
    handle = await asyncio.wait_for(starting, LIMIT)
    assert await handle.result() == 3


async def _later(gate: asyncio.Event, work: Callable[[], Any]) -> Any:
    await gate.wait()
    return await work()


async def test_a_process_that_comes_and_goes_leaks_no_descriptors(owner: Meantime, tmp_path: Path):
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    async with Meantime.connect(tmp_path / "link") as mt:
        await cut(mt)
        before = descriptors()
        for _ in range(10):
            await cut(mt)
        await until_async(lambda: descriptors() <= before, "no connection has left a descriptor", descriptors)
    for _ in range(10):
        async with Meantime.connect(tmp_path / "link"):
            pass
    await until_async(lambda: not owner._link.executors.about(), "all have gone")
    await until_async(lambda: descriptors() <= before, "no process has left a descriptor", descriptors)


async def test_what_is_known_already_is_not_news():
    news: list[tuple[str, bool]] = []
    task = Task(id="t_1", thread="t", work=Call(sum, ()).order().work, status=Status.RUNNING, run=Rounds())
    context = WorkContext(task, asyncio.get_running_loop(), time.time, lambda *said: news.append(said))
    context.relay(None, {}, None)
    assert news == []
    for _ in range(2):  # as an ending says it again
        context.relay(Progress(message="half", updated_at=1.0), {"found": 2}, "s_1")
    assert news == [("t_1", True)]
