"""Lesson 6: plain functions run on threads, and stop when they look."""

from __future__ import annotations

import asyncio
import threading

import pytest

from meantime import Call, Thread, current
from outcomes import unfinished

pytestmark = pytest.mark.anyio


async def test_a_sync_function_runs_on_a_thread(thread: Thread):
    """Nothing to declare: a function that is not async gets a worker thread, and blocks nobody."""
    handle = await thread.start(Call(threading.get_ident))

    assert await handle.result() != threading.get_ident()


async def test_a_sync_function_stops_when_it_looks(thread: Thread):
    """A thread cannot be interrupted, so a cancel is a question: look at `current().cancelled`.

    One that has seen it and returns has stopped; what it returned is kept as its partial result.
    """
    started = threading.Event()

    def count() -> int:
        counted = 0
        while not current().cancelled:
            counted += 1
            started.set()
        return counted

    handle = await thread.start(Call(count))
    await _seen(started)
    answer = await handle.cancel(wait=True)

    assert answer.task.status == "cancelled"
    assert unfinished(answer.task).partial >= 1


async def test_a_sync_function_that_never_looked_has_finished(thread: Thread):
    """It was done before it noticed: its result counts. Finished first wins."""
    started, may_finish = threading.Event(), threading.Event()

    def deaf() -> str:
        started.set()
        may_finish.wait()
        return "all of it"

    handle = await thread.start(Call(deaf))
    await _seen(started)
    assert (await handle.cancel()).task.status == "cancelling"

    may_finish.set()
    assert await handle.result() == "all of it"


async def _seen(event: threading.Event) -> None:
    await asyncio.to_thread(event.wait)
