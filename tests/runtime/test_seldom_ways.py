"""Verbs on tasks in seldom states: nothing to go on with, a value of the wrong kind, a limit reached."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.waiting import until_async

from meantime import (
    Agent,
    Call,
    InvalidInput,
    Meantime,
    NotFound,
    Refused,
    TaskTimedOut,
    current,
)
from meantime.kernel.questions import Question
from meantime.ports.store import Query
from meantime.runtime import call, tally
from meantime.runtime.runtime import Runtime
from meantime.testing import FakeClock, FakeSessionRunner
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


@pytest.fixture
async def mt(clock: FakeClock, agents: FakeSessionRunner) -> AsyncIterator[Meantime]:
    async with Meantime.open(":memory:", clock=clock, runners=[agents]) as mt:
        yield mt


@pytest.fixture
def runtime(mt: Meantime) -> Runtime:
    return runtime_of(mt)


async def forever() -> None:
    await asyncio.Event().wait()


async def asks() -> str:
    return (await current().ask(Question(id="q", text="Which?"))).text


# -- agents


async def test_an_agent_is_told_a_text(mt: Meantime, agents: FakeSessionRunner):
    """A connected process sends bytes; they are a text if they are UTF-8."""
    agents.hold()
    task = await mt.thread("a").start(Agent("explore", "look"))
    assert await task.send(b"hurry") == "queued"
    assert (await mt.get(task.id)).follow_up == "hurry"
    with pytest.raises(InvalidInput, match="An agent is told a text, not bytes"):
        await task.send(b"\xff")
    with pytest.raises(InvalidInput, match="text"):
        await task.send(5)  # pyright: ignore[reportArgumentType]


# -- calls that somebody waits for


async def test_a_call_that_takes_too_long_says_so(mt: Meantime, clock: FakeClock):
    calling = asyncio.create_task(mt.thread("a").call(Call(forever), timeout=5.0))
    await clock.advance_to_alarm(5.0)
    with pytest.raises(TaskTimedOut, match="did not end within 5 s"):
        await calling


async def test_only_the_newest_ended_calls_are_known_as_too_late(
    mt: Meantime, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(call, "REMEMBERED", 1)
    for id in ("t_first", "t_second"):
        await mt.thread("a").call(Call(int, "1"), id=id)
    with pytest.raises(Refused, match="ended"):
        await runtime.promote("t_second", "a")
    with pytest.raises(NotFound):
        await runtime.promote("t_first", "a")


# -- lists, details and numbers


async def test_a_page_knows_how_many_there_are_in_all_without_counting_them(mt: Meantime, runtime: Runtime):
    for _ in range(3):
        await (await mt.thread("a").start(Call(int, "1"))).wait()
    await mt.thread("a").start(Call(forever))
    page = await runtime.page(Query(limit=2), most=3)
    assert (len(page.tasks), page.total, page.exact) == (2, 4, True)
    page = await runtime.page(Query(thread="a", limit=2), most=3)
    assert (page.total, page.exact) == (3, False)
    with pytest.raises(InvalidInput, match="most"):
        await runtime.page(Query(limit=2), most=0)


async def test_the_details_of_a_child_name_its_parent(mt: Meantime, runtime: Runtime):
    children: list[str] = []

    async def parent() -> None:
        children.append((await mt.thread("a").start(Call(int, "1"))).id)

    started = await mt.thread("a").start(Call(parent))
    await started.wait()
    found = await runtime.details(children[0], "a")
    assert found.parent is not None
    assert found.parent.id == started.id
    assert (await runtime.details(started.id, "a")).parent is None


async def test_questions_and_progress_are_counted_along(mt: Meantime, runtime: Runtime):
    await runtime.overview(None)
    asking = await mt.thread("a").start(Call(asks))
    other = await mt.thread("a").start(Call(asks))

    async def both_wait() -> bool:
        return (await runtime.overview(None)).threads[0].waiting == 2

    await until_async(both_wait, "both wait for an answer")
    for task, left in ((asking, 1), (other, 0)):
        await mt.answer(task.id, "this one")
        await task.wait()
        assert (await runtime.overview(None)).threads[0].waiting == left
    assert sum((await runtime.overview(None)).counts.values()) == 2


async def test_only_the_newest_threads_are_remembered(
    mt: Meantime, runtime: Runtime, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tally, "KEPT_THREADS", 2)
    await runtime.overview(None)
    for name in ("a", "b", "c"):
        await (await mt.thread(name).start(Call(int, "1"))).wait()
    assert [one.id for one in (await runtime.overview(None)).threads] == ["c", "b"]
