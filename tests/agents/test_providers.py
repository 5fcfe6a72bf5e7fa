"""A provider's troubles never end a task and tell nobody; too many at once learn to take turns."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Agent, Meantime
from meantime.kernel.limits import Limits
from meantime.kernel.model import Failed
from meantime.ports.session import Turned
from meantime.runners.agent.concurrency_limit import Capacities, Capacity
from meantime.runtime.settings import Settings
from meantime.testing import FakeClock
from meantime.testing.scripted_host import ScriptedHost
from outcomes import failed, unfinished

from .stage import NAME, events, start, working

pytestmark = pytest.mark.anyio

LIMITED = Turned(error=Failed("429", "rate"), retryable=True, rate_limited=True, retry_after=7.0)
BROKEN = Turned(error=Failed("503", "http_503"), retryable=True)


@pytest.mark.behaviour("L26")
@pytest.mark.scenario("004", "E13")
async def test_retryable_errors_are_waited_out_and_nobody_hears_of_them(tmp_path: Path):
    troubles = [LIMITED, BROKEN, BROKEN, LIMITED]

    async def turn(prompt, hearer):
        hearer.said("I beg")
        return troubles.pop(0) if troubles else "done"

    clock = FakeClock(quiet=0.02)
    host = ScriptedHost(turn)
    async with working(tmp_path, host, clock=clock) as mt:
        handle = await start(mt)
        for pause in (7.0, 2.0, 5.0, 7.0):
            await clock.advance_to_alarm(pause)
        await clock.advance(0)
        assert await handle.result() == "done"
        assert [prompt.again for prompt in host.prompts] == [0, 1, 2, 3, 4]
        assert len({prompt.key for prompt in host.prompts}) == 1
        kinds = await events(mt, handle.id)
        assert set(kinds) == {"submitted", "progress", "ended"}
        async with mt.thread("conv-1").turn() as told:
            assert len(told.notices) == 1
        assert [line.text for line in await mt.lines(handle.id)] == ["do it", "done"]


@pytest.mark.behaviour("L26")
async def test_an_error_that_is_not_retryable_ends_it(tmp_path: Path):
    async def turn(prompt, hearer):
        return Turned(error=Failed("401 bad key", "http_401"))

    async with working(tmp_path, turn) as mt:
        assert failed(await (await start(mt)).wait()).code == "http_401"


@pytest.mark.behaviour("L26")
async def test_a_host_that_raises_is_an_error_with_what_was_said(tmp_path: Path):
    async def turn(prompt, hearer):
        hearer.said("so far")
        raise RuntimeError("pipe closed")

    async with working(tmp_path, turn) as mt:
        task = await (await start(mt)).wait()
        assert failed(task).message == "The agent's host failed: RuntimeError: pipe closed"
        assert (unfinished(task).partial, task.session) == ("so far", f"s-{task.id}")


@pytest.mark.behaviour("L26")
async def test_a_cancel_does_not_wait_for_the_provider(tmp_path: Path):
    clock = FakeClock(quiet=0.02)

    async def turn(prompt, hearer):
        return Turned(error=Failed("429"), retryable=True, rate_limited=True, retry_after=3_000.0)

    async with working(tmp_path, turn, clock=clock) as mt:
        handle = await start(mt)
        await clock.until(lambda: any(left == 3_000.0 for left in clock.due_in))
        before = clock.monotonic()
        assert (await handle.cancel(wait=True)).task.status == "cancelled"
        assert clock.monotonic() == before


@pytest.mark.breadth
@pytest.mark.behaviour("L26")
async def test_the_wait_for_a_provider_is_no_silence(tmp_path: Path):
    troubles = [Turned(error=Failed("429"), retryable=True, retry_after=1_000.0)]

    async def turn(prompt, hearer):
        return troubles.pop(0) if troubles else "done"

    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, turn, clock=clock, stall=300.0, on_stall="stop") as mt:
        handle = await start(mt)
        await clock.until(lambda: any(left == 1_000.0 for left in clock.due_in))
        await clock.advance(1_000.0)
        assert await handle.result() == "done"


@pytest.mark.behaviour("L26")
async def test_ten_agents_at_a_model_that_takes_two_at_once_all_finish(tmp_path: Path):
    clock = FakeClock(quiet=0.01)
    inside, most, refused = 0, 0, 0
    doors: list[asyncio.Future[None]] = []

    async def turn(prompt, hearer):
        nonlocal inside, most, refused
        if inside >= 2:
            refused += 1
            return Turned(error=Failed("429"), retryable=True, rate_limited=True, retry_after=1.0)
        inside += 1
        most = max(most, inside)
        door = asyncio.get_running_loop().create_future()
        clock.call_later(0.5, lambda: door.done() or door.set_result(None))
        doors.append(door)
        try:
            await door
        finally:
            inside -= 1
        return "done"

    settings = Settings(limits=Limits(per_thread=-1, per_kind={}, total=-1))
    async with working(tmp_path, turn, clock=clock, open={"settings": settings}) as mt:
        handles = [await start(mt, id=f"t{n}") for n in range(10)]

        async def all_ended() -> bool:
            await clock.advance(0.5)
            return all([(await handle.get()).ended for handle in handles])

        await until_async(all_ended, "all have ended")
        assert [(await handle.get()).status for handle in handles] == ["completed"] * 10
        assert most == 2
        assert refused < 40  # it learns: without a gate ten would knock again every second


@pytest.mark.behaviour("L26")
async def test_the_child_of_an_agent_that_waits_inside_is_let_in(tmp_path: Path):
    """A model that takes one at a time: the parent holds the place, and waits for its child."""
    box: list[Meantime] = []
    troubles = [LIMITED, LIMITED, LIMITED]

    async def turn(prompt, hearer):
        if troubles:
            return troubles.pop()
        if prompt.text == "child":
            return "from the child"
        child = await box[0].thread("inner").start(Agent(NAME, "child"))
        return await child.result()

    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, turn, clock=clock, depth=1) as mt:
        box.append(mt)
        handle = await start(mt, "parent")
        for _ in range(3):
            await clock.advance_to_alarm(7.0)
        await clock.advance(1)
        assert await handle.result() == "from the child"


# The gate itself


@pytest.mark.behaviour("L26")
async def test_who_waits_is_let_in_in_order_and_a_cancelled_one_loses_no_place():
    clock = FakeClock()
    gate = Capacity(clock)
    await gate.enter()
    gate.leave(limited=True, retry_after=1.0)  # one at a time now, and nobody for a second
    order: list[int] = []

    async def pass_by(number: int) -> None:
        await gate.enter()
        order.append(number)

    waiting = [asyncio.ensure_future(pass_by(number)) for number in range(4)]
    await clock.settle()
    assert order == []
    await clock.advance(1.0)
    assert order == [0]
    waiting[1].cancel()
    await clock.settle()
    gate.leave()  # a success: there is room for two again
    await clock.settle()
    assert order == [0, 2, 3]
    gate.leave()
    gate.leave()
    await asyncio.wait(waiting)


@pytest.mark.behaviour("L26")
async def test_refusals_of_one_burst_count_once():
    clock = FakeClock()
    gate = Capacity(clock)
    for _ in range(10):
        await gate.enter()
    for _ in range(8):
        gate.leave(limited=True, retry_after=0.5)
    await clock.advance(0.5)
    entered = [asyncio.ensure_future(gate.enter()) for _ in range(10)]
    await clock.settle()
    assert sum(one.done() for one in entered) == 3  # half of ten, less the two that are still inside
    for one in entered:
        one.cancel()
    await asyncio.wait(entered)


@pytest.mark.behaviour("L26")
async def test_every_model_has_a_gate_of_its_own():
    clock = FakeClock()
    gates = Capacities(clock)
    one = gates.of("a/one")
    await one.enter()
    one.leave(limited=True, retry_after=100.0)
    await asyncio.wait_for(gates.of("a/two").enter(), LIMIT)
    waiting = asyncio.ensure_future(gates.of("a/one").enter())
    await clock.settle()
    assert not waiting.done()
    waiting.cancel()
    await asyncio.wait({waiting})
