"""The wall clock jumps. No order, no timeout and no duration's sign changes (P9)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from meantime.stores.memory import MemoryStore

from .clock import FaultClock
from .judge import judge
from .loops import SeededLoop, leave
from .world import World

MONTH = 31 * 86_400.0


def in_loop(play: Any) -> Any:
    clock = FaultClock()
    loop = SeededLoop(1, clock)
    try:
        return loop.run_until_complete(play(World(MemoryStore, clock)))
    finally:
        leave(loop)


@pytest.mark.parametrize("jump", [-MONTH, -1.0, 1.0, MONTH])
def test_a_jump_changes_no_order_and_no_sign(jump: float) -> None:
    async def play(world: World) -> None:
        await world.open()
        ids = [await world.start("a") for _ in range(4)]
        durations: list[float | None] = []
        for id in reversed(ids):
            world.clock.jump(jump)
            world.finish(id)
            ended = (await world.thread("a").wait(id.rpartition(".")[0]))[0]
            durations.append(ended.run.duration)
            await world.observe()
        told = [notice.id for notice in await world.turn("a")]
        assert told == ids[::-1]
        assert judge(world.ledger, await world.transcripts()).clean
        assert all(duration is not None and 0 <= duration < 60 for duration in durations), durations

    in_loop(play)


@pytest.mark.parametrize("jump", [-MONTH, MONTH])
def test_a_jump_changes_no_timeout(jump: float) -> None:
    async def play(world: World) -> None:
        await world.open()
        id = await world.start("a", timeout=100.0)
        task = id.rpartition(".")[0]
        began = world.clock.monotonic()
        world.clock.jump(jump)
        early = (await world.thread("a").wait(task, timeout=90.0))[0]
        assert not early.ended
        ended = (await world.thread("a").wait(task))[0]
        assert ended.status == "timed_out"
        assert world.clock.monotonic() - began == pytest.approx(100.0, abs=11.0)

    in_loop(play)


def test_a_jump_of_a_month_parks_nothing_that_a_host_waits_for() -> None:
    async def play(world: World) -> None:
        await world.open()
        heard: list[str] = []

        async def host() -> None:
            async for _ in world.thread("a").wakeups():
                heard.extend(notice.id for notice in await world.turn("a"))

        listening = asyncio.ensure_future(host())
        await asyncio.sleep(0)
        busy = world.thread("a").turn()
        await busy.__aenter__()  # while this turn is open, nobody is woken
        id = await world.start("a")
        world.finish(id)
        await world.thread("a").wait(id.rpartition(".")[0])
        world.clock.jump(MONTH)
        await world.thread("b").wait((await world.start("b", timeout=7_000.0)).rpartition(".")[0])
        await busy.__aexit__(None, None, None)
        later = await world.start("b", timeout=20.0)
        await world.thread("b").wait(later.rpartition(".")[0])
        assert heard == [id]
        listening.cancel()

    in_loop(play)
