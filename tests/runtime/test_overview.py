"""Everything in a few numbers, and the facts of rows: right at the first look, and counted along after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from meantime import Call, Meantime, Shell
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import Limits
from meantime.kernel.row_facts import MOST_FACTS
from meantime.runtime.runtime import Runtime
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


async def forever() -> None:
    await asyncio.Event().wait()


async def broken() -> None:
    raise ValueError("no")


@pytest.fixture
async def mt() -> AsyncIterator[Meantime]:
    async with Meantime.open(":memory:") as mt:
        yield mt


@pytest.fixture
def runtime(mt: Meantime) -> Runtime:
    return runtime_of(mt)


async def counted(runtime: Runtime, thread: str | None = None) -> dict[str, int]:
    """The statuses that there are."""
    found = await runtime.overview(thread)
    return {status: count for status, count in found.counts.items() if count}


async def test_the_first_look_knows_what_was_there_before(mt: Meantime, runtime: Runtime):
    await mt.thread("a").start(Call(forever))
    await (await mt.thread("b").start(Call(broken))).wait()
    found = await runtime.overview(None)
    assert await counted(runtime) == {Status.RUNNING: 1, Status.FAILED: 1}
    assert (found.failed, found.ended) == (1, 1)
    assert {standing.id for standing in found.threads} == {"a", "b"}


async def test_later_changes_are_counted_along(mt: Meantime, runtime: Runtime):
    assert await counted(runtime) == {}
    await runtime.set_limits(Limits(per_thread=1))
    running = await mt.thread("a").start(Call(forever))
    queued = await mt.thread("a").start(Call(broken))
    assert await counted(runtime) == {Status.RUNNING: 1, Status.QUEUED: 1}
    await running.cancel(wait=True)
    await queued.wait()
    assert await counted(runtime) == {Status.CANCELLED: 1, Status.FAILED: 1}
    await mt.thread("a").clear()  # a change of an ended task is not an ending
    assert (await runtime.overview(None)).ended == 2


async def test_two_first_looks_at_once_count_once(mt: Meantime, runtime: Runtime):
    await mt.thread("a").start(Call(forever))
    await asyncio.gather(runtime.overview(None), runtime.overview(None))
    await mt.thread("a").start(Call(forever))
    assert await counted(runtime) == {Status.RUNNING: 2}


async def test_a_thread_sees_its_own_numbers_only(mt: Meantime, runtime: Runtime):
    await mt.thread("a").start(Call(forever))
    await (await mt.thread("b").start(Call(broken))).wait()
    assert await counted(runtime, "b") == {Status.FAILED: 1}
    assert [standing.id for standing in (await runtime.overview("b")).threads] == ["b"]


@pytest.mark.in_process("the last line of output arrives from another machine, a moment later")
async def test_a_row_says_where_its_task_stands(mt: Meantime, runtime: Runtime):
    await runtime.set_limits(Limits(per_thread=1))
    thread = mt.thread("a")
    running = await thread.start(Shell("echo one line; cat", open_stdin=True))
    await anext(running.log.follow())
    queued = await thread.start(Shell("true"))
    ended = await mt.thread("b").start(Call(broken))
    await ended.wait()
    first, second, third = await runtime.row_facts([running.id, queued.id, ended.id])
    assert first.said == "one line"
    assert (second.position, second.slots_used, second.slots_total, second.slots_of) == (1, 1, 1, "shell")
    assert third.delivery is not None
    assert third.delivery.state == "unread"


async def test_the_facts_of_too_many_rows_are_refused(runtime: Runtime):
    with pytest.raises(InvalidInput, match="too many"):
        await runtime.row_facts(["t_1"] * (MOST_FACTS + 1))
