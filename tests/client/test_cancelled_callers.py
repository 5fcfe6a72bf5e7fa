"""Whoever asks may be cancelled at any moment: nothing runs on, nothing is held, no thread stays busy."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TypeVar

import pytest
from tests.waiting import LIMIT, until_async

from jobs import Job
from meantime import Call

from .pair import Pair

pytestmark = pytest.mark.anyio
ROUNDS = 40  # of the loop; an answer is there after a dozen


T = TypeVar("T")


async def cancelled_after(rounds: int, asking: asyncio.Future[T]) -> T | None:
    for _ in range(rounds):
        await asyncio.sleep(0)
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        return await asking
    return None


async def test_a_cancelled_call_stops_its_function(pair: Pair):
    job = Job()
    calling = asyncio.create_task(pair.mt.thread("a").call(job.call))
    await job.started.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await asyncio.wait_for(job.asked_to_stop.wait(), LIMIT)
    await until_async(lambda: not pair.held() and not pair.runs(), "nobody holds the function any more")


async def test_a_call_that_is_cancelled_without_an_owner_stops_its_function(pair: Pair):
    job = Job()
    calling = asyncio.create_task(pair.mt.thread("a").call(job.call))
    await job.started.wait()
    await pair.owner.close()
    await until_async(lambda: not pair.is_up(), "the connection is lost")
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await asyncio.wait_for(job.asked_to_stop.wait(), LIMIT)
    await pair.open_owner()
    await until_async(lambda: not pair.held(), "its process holds no function any more")


async def test_a_cancelled_start_is_started_or_not_held(pair: Pair):
    ran: list[int] = []
    for rounds in range(ROUNDS):
        starting = asyncio.create_task(pair.mt.thread("a").start(Call(ran.append, rounds)))
        await cancelled_after(rounds, starting)
    await until_async(lambda: not pair.held(), "its process holds no function any more")
    tasks = await pair.mt.list("all", limit=1_000)
    await pair.mt.thread("a").wait(*tasks)
    assert sorted(ran) == sorted(task.work.input["args"][0] for task in tasks)


async def test_a_start_that_was_cancelled_without_an_owner_is_not_started_later(pair: Pair):
    await pair.owner.close()
    await until_async(lambda: not pair.is_up(), "the connection is lost")
    await cancelled_after(5, asyncio.create_task(pair.mt.thread("a").start(Call(int, "1"))))
    assert not pair.held()
    await pair.open_owner()
    await until_async(pair.is_up, "it is connected again")
    assert await pair.mt.list("all") == []


async def test_a_cancelled_turn_is_not_left_open(pair: Pair):
    """Whatever had been answered: a thread with an open turn is never woken."""
    for rounds in range(ROUNDS):
        opening = asyncio.create_task(pair.client.open_turn("a", lease=None, limit=10))
        opened = await cancelled_after(rounds, opening)
        if opened is not None:
            closing = asyncio.create_task(pair.client.close_turn(opened.id, failed=False))
            await cancelled_after(max(1, rounds - ROUNDS // 2), closing)
    await until_async(lambda: not pair.turns, "no turn is open")
    assert not pair.client.turns()


async def test_a_cancelled_wait_leaves_no_question_behind(pair: Pair):
    job = Job()
    handle = await pair.mt.thread("a").start(job.call)
    (link,) = pair.owner._link._links
    for rounds in range(ROUNDS):
        await cancelled_after(rounds, asyncio.create_task(handle.wait()))
    await until_async(lambda: not link._asked, "the owner has forgotten what was asked")
    assert not pair.client._connection._asked
    job.finish()
    assert await handle.result() == "done"


async def test_a_cancelled_connect_leaves_nothing_that_seeks(pair: Pair):
    from meantime import Meantime

    for rounds in range(ROUNDS):
        opened = await cancelled_after(rounds, asyncio.ensure_future(_connected(Meantime.connect(pair.link))))
        if opened is not None:
            await opened.close()
    await until_async(lambda: len(pair.owner._link._links) == 1, "one connection is left")

    def seeking() -> list[asyncio.Task[object]]:
        return [task for task in asyncio.all_tasks() if "_seek" in repr(task.get_coro())]

    await until_async(lambda: not seeking(), "nothing seeks the owner any more", seeking)


async def _connected(opening):
    return await opening
