"""Budgets, loops, silence, timeouts: a warning, a last turn to hand in what there is, then a hard stop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import until_async

from meantime import Agent, Meantime, TimedOut
from meantime.kernel.budgets import Budget
from meantime.kernel.limits import Limits
from meantime.runtime.settings import Settings
from meantime.testing import FakeClock
from meantime.testing.scripted_host import LastingScriptedHost, ScriptedHost
from outcomes import completed, failed, unfinished
from runtimes import runtime_of

from .stage import NAME, STEER, call, events, never, start, text, working

pytestmark = pytest.mark.anyio

SPENDS = {
    "turns": lambda hearer: hearer.spent(turns=1),
    "tokens": lambda hearer: hearer.spent(tokens=100),
    "cost": lambda hearer: hearer.spent(cost=0.5),
    "tool_calls": lambda hearer: hearer.line(call("read", n=hearer)),
}
MOST = {"turns": 10, "tokens": 1_000, "cost": 5.0, "tool_calls": 10}


def spending(what: str, said: list[str]):
    """Goes on for ever, a tenth of its budget at a time; then hands in what it has."""

    async def turn(prompt, hearer):
        said.append(prompt.text)
        if prompt.last:
            return "what I have"
        for number in range(1_000):
            if what == "tool_calls":
                hearer.line(call("read", n=number))
            else:
                SPENDS[what](hearer)
            await asyncio.sleep(0)
        return "never"

    return turn


@pytest.mark.behaviour("L15")
@pytest.mark.parametrize("what", SPENDS)
async def test_a_budget_warns_at_80_percent_then_a_last_turn_then_the_end(tmp_path: Path, what: str):
    said: list[str] = []
    host = ScriptedHost(spending(what, said), STEER)
    async with working(tmp_path, host, budget=Budget(**{what: MOST[what]})) as mt:
        handle = await start(mt)
        task = await handle.wait()
        name = what.replace("_", " ")
        assert (task.status, failed(task).code) == ("failed", "budget_spent")
        assert failed(task).message == f"The budget of {name} is spent."
        assert (failed(task).terminate_reason, unfinished(task).partial) == ("MAX_TURNS", "what I have")
        assert failed(task).final_message == "what I have"
        assert task.progress.message == f"80 % of the {name} are spent"
        assert "warned" in await events(mt, handle.id)
        assert [words for words in host.steered if f"80 % of the {name}" in words] == host.steered[:1]
        assert [prompt.last for prompt in host.prompts] == [False, True]
        assert "Hand in now" in said[1]


@pytest.mark.behaviour("L15")
async def test_without_a_last_turn_the_budget_stops_it_and_keeps_what_it_said(tmp_path: Path):
    async def turn(prompt, hearer):
        hearer.line(text("half of it"))
        hearer.spent(turns=5)
        return await never()

    host = ScriptedHost(turn)
    async with working(tmp_path, host, budget=Budget(turns=5), last_turn=0) as mt:
        task = await (await start(mt)).wait()
        assert (failed(task).code, unfinished(task).partial) == ("budget_spent", "half of it")
        assert len(host.prompts) == 1


@pytest.mark.behaviour("L15")
async def test_a_last_turn_that_does_not_end_is_ended(tmp_path: Path):
    async def turn(prompt, hearer):
        hearer.line(text("handing in" if prompt.last else "working"))
        hearer.spent(turns=5)
        return await never()

    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, turn, clock=clock, budget=Budget(turns=5), last_turn=30) as mt:
        handle = await start(mt)
        await clock.advance_to_alarm(30)
        task = await handle.wait()
        assert (failed(task).code, unfinished(task).partial) == ("budget_spent", "working\n\nhanding in")


@pytest.mark.breadth
@pytest.mark.behaviour("L15")
async def test_a_timeout_leaves_time_for_a_last_turn(tmp_path: Path):
    async def turn(prompt, hearer):
        return "three of five" if prompt.last else await never()

    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, turn, clock=clock, last_turn=30) as mt:
        handle = await start(mt, timeout=300)
        await clock.advance_to_alarm(270)
        task = await handle.wait()
        assert (task.status, unfinished(task).partial) == ("timed_out", "three of five")
        assert isinstance(task.outcome, TimedOut)
        assert task.outcome.terminate_reason == "TIMEOUT"
        assert task.run.duration < 300


@pytest.mark.breadth
@pytest.mark.behaviour("L13")
async def test_a_timeout_ends_a_last_turn_that_takes_too_long(tmp_path: Path):
    heard: list[bool] = []

    async def turn(prompt, hearer):
        hearer.line(text("last words" if prompt.last else "first words"))
        heard.append(prompt.last)
        return await never()

    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, turn, clock=clock, last_turn=30) as mt:
        handle = await start(mt, timeout=300)
        await clock.until(lambda: heard == [False])
        await clock.advance_to_alarm(270)
        await clock.until(lambda: heard == [False, True])  # its prompt is on disk first, which takes a while
        await clock.advance(31)
        task = await handle.wait()
        assert (task.status, unfinished(task).partial) == ("timed_out", "first words\n\nlast words")


@pytest.mark.behaviour("L13")
async def test_a_timeout_too_short_for_a_last_turn_keeps_what_was_said(tmp_path: Path):
    async def turn(prompt, hearer):
        hearer.said("so f")
        return await never()

    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, turn, clock=clock, last_turn=30) as mt:
        handle = await start(mt, timeout=20)
        await clock.advance_to_alarm(20)
        task = await handle.wait()
        assert (task.status, unfinished(task).partial) == ("timed_out", "so f")


@pytest.mark.behaviour("L15")
@pytest.mark.parametrize(("seconds", "halt"), [(100.0, 70.0), (20.0, 20.0)])
async def test_a_budget_of_time_is_kept_also_where_it_is_short(tmp_path: Path, seconds: float, halt: float):
    async def turn(prompt, hearer):
        return "in time" if prompt.last else await never()

    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, turn, clock=clock, budget=Budget(seconds=seconds), last_turn=30) as mt:
        handle = await start(mt)
        await clock.advance_to_alarm(halt)
        task = await handle.wait()
        assert (failed(task).code, failed(task).terminate_reason) == ("budget_spent", "TIMEOUT")
        assert unfinished(task).partial == "in time"


@pytest.mark.behaviour("L15")
async def test_a_cancel_in_the_last_turn_is_a_cancel(tmp_path: Path):
    last = asyncio.Event()

    async def turn(prompt, hearer):
        hearer.spent(turns=5)
        if prompt.last:
            last.set()
        return await never()

    async with working(tmp_path, turn, budget=Budget(turns=5)) as mt:
        handle = await start(mt)
        await last.wait()
        assert (await handle.cancel(wait=True)).task.status == "cancelled"


@pytest.mark.behaviour("L15")
async def test_an_agent_that_is_done_just_then_is_done(tmp_path: Path):
    async def turn(prompt, hearer):
        hearer.spent(turns=5)
        return "all of it"

    async with working(tmp_path, turn, budget=Budget(turns=5)) as mt:
        assert completed(await (await start(mt)).wait()).result == "all of it"


@pytest.mark.behaviour("L15")
async def test_the_budget_of_a_tree_counts_the_children(tmp_path: Path):
    box: list[Meantime] = []

    async def turn(prompt, hearer):
        if prompt.last:
            return f"partial {prompt.key.split('.')[0] == 'child'}"
        if prompt.text == "child":
            for _ in range(10):
                hearer.spent(turns=1)
                await asyncio.sleep(0)
            return "the child is done"
        hearer.spent(turns=1)
        child = await box[0].thread("inner").start(Agent(NAME, "child"), id="child")
        await child.wait()
        hearer.spent(turns=1)
        return await never()

    async with working(tmp_path, turn, depth=1, tree=Budget(turns=5)) as mt:
        box.append(mt)
        handle = await start(mt, "parent")
        parent = await handle.wait()
        child = await mt.get("child")
        assert failed(child).message == "The budget of turns of all together is spent."
        assert (failed(parent).code, unfinished(parent).partial) == ("budget_spent", "partial False")
        assert unfinished(child).partial == "partial True"


@pytest.mark.behaviour("L15")
async def test_a_child_of_a_tree_that_is_spent_is_not_begun(tmp_path: Path):
    box: list[Meantime] = []

    async def turn(prompt, hearer):
        if prompt.text == "parent":
            await box[0].thread("conv-1").start(Agent(NAME, "child"), id="child")
            hearer.spent(turns=5)
        return "hm"

    host = ScriptedHost(turn)
    one = {"settings": Settings(limits=Limits(per_kind={"agent": 1}))}  # the child begins after its parent
    async with working(tmp_path, host, open=one, depth=1, tree=Budget(turns=5)) as mt:
        box.append(mt)
        await (await start(mt, "parent")).wait()
        assert failed((await mt.thread("conv-1").wait("child"))[0]).code == "budget_spent"
        assert "child" not in [prompt.text for prompt in host.prompts]


@pytest.mark.behaviour("L15")
async def test_what_was_spent_before_a_restart_is_spent(tmp_path: Path):
    spent, gate = asyncio.Event(), asyncio.Event()

    async def turn(prompt, hearer):
        if prompt.last:
            return "handed in"
        hearer.spent(turns=8)
        spent.set()
        await gate.wait()
        hearer.spent(turns=2)
        return await never()

    host = LastingScriptedHost(turn)
    async with working(tmp_path, host, budget=Budget(turns=10)) as mt:
        handle = await start(mt)
        await spent.wait()

        async def kept() -> bool:
            return (await runtime_of(mt).store.load(handle.id)).progress is not None

        await until_async(kept, "the spending is on record")
    async with working(tmp_path, host, budget=Budget(turns=10)) as mt:
        gate.set()
        task = (await mt.thread("conv-1").wait(handle.id))[0]
        assert (failed(task).code, task.progress.turns) == ("budget_spent", 10)
        assert [prompt.last for prompt in host.prompts] == [False, True]


# Loops and silence


@pytest.mark.behaviour("L14")
async def test_the_same_call_again_and_again_is_a_loop(tmp_path: Path):
    async def turn(prompt, hearer):
        if prompt.last:
            return "I was stuck"
        for _ in range(100):
            hearer.line(call("read", path="a"))
            await asyncio.sleep(0)
        return "never"

    async with working(tmp_path, turn, repeats=12) as mt:
        task = await (await start(mt)).wait()
        assert (failed(task).code, unfinished(task).partial) == ("loop", "I was stuck")
        assert failed(task).message == "It called read 12 times in a row with the same arguments."


@pytest.mark.behaviour("L14")
async def test_other_calls_between_are_no_loop(tmp_path: Path):
    async def turn(prompt, hearer):
        for number in range(100):
            hearer.line(call("read", path="a", page=number % 2))
            await asyncio.sleep(0)
        return "fine"

    async with working(tmp_path, turn, repeats=3) as mt:
        assert await (await start(mt)).result() == "fine"


@pytest.mark.breadth
@pytest.mark.behaviour("L14")
async def test_silence_is_warned_about_and_ends_nothing(tmp_path: Path):
    gate = asyncio.Event()

    async def turn(prompt, hearer):
        await gate.wait()
        return "slow, but done"

    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, turn, clock=clock, stall=300.0) as mt:
        handle = await start(mt)
        await clock.advance_to_alarm(300.0)
        assert (await handle.get()).progress.message == "silent for 5m 0s"
        await clock.advance(300.0)
        gate.set()
        assert await handle.result() == "slow, but done"


@pytest.mark.breadth
@pytest.mark.behaviour("L14")
async def test_silence_stops_where_the_settings_say_so(tmp_path: Path):
    async def turn(prompt, hearer):
        return "was asleep" if prompt.last else await never()

    clock = FakeClock(quiet=0.02)
    async with working(tmp_path, turn, clock=clock, stall=300.0, on_stall="stop") as mt:
        handle = await start(mt)
        await clock.advance_to_alarm(300.0)
        task = await handle.wait()
        assert (failed(task).code, unfinished(task).partial) == ("stalled", "was asleep")
        assert failed(task).message == "It reported nothing for 5m 0s."


@pytest.mark.breadth
@pytest.mark.behaviour("L14")
async def test_any_sign_of_life_is_no_silence(tmp_path: Path):
    clock = FakeClock()
    ticks = asyncio.Queue[None]()

    async def turn(prompt, hearer):
        for _ in range(5):
            await ticks.get()
            hearer.alive()
        return "alive"

    async with working(tmp_path, turn, clock=clock, stall=300.0, on_stall="stop") as mt:
        handle = await start(mt)
        for _ in range(5):
            ticks.put_nowait(None)
            await clock.until(ticks.empty)
            await clock.advance(200.0)
        assert await handle.result() == "alive"


@pytest.mark.behaviour("P9")
async def test_a_jump_of_the_wall_clock_ends_nothing(tmp_path: Path):
    """Also over a restart: the age of a run is measured by the monotonic clock."""
    began, gate = asyncio.Event(), asyncio.Event()

    async def turn(prompt, hearer):
        began.set()
        await gate.wait()
        return "in time"

    clock = FakeClock(quiet=0.02)
    host = LastingScriptedHost(turn)
    async with working(tmp_path, host, clock=clock) as mt:
        handle = await start(mt, timeout=3_600)
        await began.wait()
        await clock.advance(100)
        clock.jump(1e6)
    clock.jump(1e6)
    async with working(tmp_path, host, clock=clock) as mt:
        await clock.advance(100)
        gate.set()
        await clock.advance(0)
        task = (await mt.thread("conv-1").wait(handle.id))[0]
        assert (task.status, task.run.duration) == ("completed", 200.0)
