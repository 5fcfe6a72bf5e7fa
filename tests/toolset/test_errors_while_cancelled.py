"""Work that fails while it is cancelled is cancelled, as in seed 002, in every dialect (decision 36)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.waiting import until

from meantime import Call, Cancelled, Meantime, TaskCancelled, Thread, current
from meantime.dialects import dialect, names
from meantime.kernel.lifecycle import Status

pytestmark = pytest.mark.anyio

SAYS = "It failed while it was being cancelled: RuntimeError: the lock is held"


def _async_work(started: threading.Event) -> Callable[[], Any]:
    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("the lock is held")

    return work


def _sync_work(started: threading.Event) -> Callable[[], Any]:
    def work() -> None:
        started.set()
        until(lambda: current().cancelled, "it is to stop")
        raise RuntimeError("the lock is held")

    return work


@pytest.fixture(params=[_async_work, _sync_work], ids=["async", "sync"])
def work(request: pytest.FixtureRequest) -> Callable[[threading.Event], Callable[[], Any]]:
    return request.param


async def _cancelled(thread: Thread, work: Callable[[threading.Event], Callable[[], Any]]) -> str:
    started = threading.Event()
    handle = await thread.start(Call(work(started)))
    assert await asyncio.to_thread(started.wait, 30)
    await handle.cancel(wait=True)
    return handle.id


@pytest.mark.behaviour("L7")
async def test_an_error_while_being_cancelled_is_a_cancel_that_keeps_the_error(work):
    async with Meantime.open(":memory:") as mt:
        thread = mt.thread("conv-1")
        task = await thread.get(await _cancelled(thread, work))
        assert task.status is Status.CANCELLED
        assert task.outcome == Cancelled("agent", error="RuntimeError: the lock is held")
        with pytest.raises(TaskCancelled):
            await thread.result(task.id)


@pytest.mark.behaviour("L7", "R3")
@pytest.mark.parametrize("name", names())
async def test_every_dialect_calls_it_cancelled_and_tells_the_error(name: str, work):
    async with Meantime.open(":memory:") as mt:
        thread = mt.thread("conv-1")
        task = await thread.get(await _cancelled(thread, work))
        assert dialect(name).status(task.status, 1) == "cancelled"
        async with thread.turn() as turn:
            (message,) = turn.render(name)
            await turn.ack()
        text = "".join(part.text for part in message.parts)
        assert "cancelled" in text
        assert SAYS in text
        assert "failed" not in text.replace(SAYS, "")
