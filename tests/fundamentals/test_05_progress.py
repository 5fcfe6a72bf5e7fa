"""Lesson 5: work can say how far it is, and hand out values before it ends."""

from __future__ import annotations

import asyncio

import pytest

from meantime import Call, Thread, current

pytestmark = pytest.mark.anyio


@pytest.mark.in_process("its progress arrives from another machine, a moment later")
async def test_progress_and_emitted_values(thread: Thread):
    """Inside the work, `current()` is its context.

    `progress` shows at once to whoever looks. `emit` keeps a named value with the outcome, whatever the
    outcome will be. Neither makes a notice: only an ending does.
    """
    said, may_finish = asyncio.Event(), asyncio.Event()

    async def crawl() -> str:
        current().progress(40, phase="crawling", message="page 4 of 10")
        current().emit("pages", ["/", "/about"])
        said.set()
        await may_finish.wait()
        return "crawled"

    handle = await thread.start(Call(crawl))
    await said.wait()

    task = await handle.get()
    assert task.progress is not None
    assert (task.progress.percent, task.progress.phase) == (40, "crawling")
    output = await handle.output()
    assert output.partial
    assert output.emitted == {"pages": ["/", "/about"]}

    may_finish.set()
    task = await handle.wait()
    assert task.outcome.emitted_vars == {"pages": ["/", "/about"]}
