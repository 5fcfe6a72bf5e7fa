"""Work that goes on beside its caller."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest
from tests.waiting import LIMIT

from meantime.ports.event_loop import BackgroundTasks

pytestmark = pytest.mark.anyio


async def for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def test_a_task_that_nobody_holds_is_not_collected_before_it_is_done():
    tasks, done = BackgroundTasks(), asyncio.Event()

    async def work() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
            gc.collect()
        done.set()

    tasks.start(work())
    async with asyncio.timeout(LIMIT):
        await done.wait()


async def test_a_task_that_is_done_is_not_held_any_more():
    tasks = BackgroundTasks()
    task = tasks.start(asyncio.sleep(0, "result"))
    assert len(tasks) == 1
    assert await task == "result"
    assert len(tasks) == 0


async def test_waiting_includes_tasks_that_are_started_meanwhile():
    tasks, done = BackgroundTasks(), list[str]()

    async def work(name: str) -> None:
        await asyncio.sleep(0)
        if name == "first":
            tasks.start(work("second"))
        done.append(name)

    tasks.start(work("first"))
    async with asyncio.timeout(LIMIT):
        await tasks.wait()
    assert done == ["first", "second"]


async def test_waiting_has_a_limit_and_leaves_the_tasks_alone():
    tasks = BackgroundTasks()
    task = tasks.start(for_ever())
    async with asyncio.timeout(LIMIT):
        await tasks.wait(0.01)
    assert not task.done()
    await tasks.close()


async def test_waiting_for_nothing_returns_at_once():
    async with asyncio.timeout(LIMIT):
        await BackgroundTasks().wait()
        await BackgroundTasks().close()


async def test_closing_cancels_all_and_waits_for_their_ends():
    tasks, ended = BackgroundTasks(), list[str]()

    async def work(name: str) -> None:
        try:
            await for_ever()
        finally:
            await asyncio.sleep(0)
            ended.append(name)

    tasks.start(work("one"))
    tasks.start(work("two"))
    await asyncio.sleep(0)
    async with asyncio.timeout(LIMIT):
        await tasks.close()
    assert sorted(ended) == ["one", "two"]
    assert len(tasks) == 0


def test_an_error_that_nobody_takes_is_logged(caplog: pytest.LogCaptureFixture):
    async def fail() -> None:
        raise RuntimeError("nobody waits for this")

    async def begin() -> None:
        tasks = BackgroundTasks()
        tasks.start(fail())
        async with asyncio.timeout(LIMIT):
            await tasks.wait()

    with caplog.at_level(logging.ERROR, "asyncio"):
        asyncio.run(begin())
        gc.collect()
    assert "nobody waits for this" in caplog.text
