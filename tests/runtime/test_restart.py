"""H1 and L27 of the matrix, P1 and P3: what a restart finds, after a close and after `kill -9`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import chores
import pytest
from tests.waiting import LIMIT, until_async

from jobs import finished, messages, start, take_turn
from meantime import (
    Agent,
    Call,
    Cancelled,
    Completed,
    InlineLimits,
    Lost,
    Meantime,
    Status,
    Thread,
    current,
)
from meantime.testing import FakeClock, FakeSessionRunner, Reply

pytestmark = pytest.mark.anyio

CRASHING = str(Path(__file__).with_name("crashing.py"))
ENV = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "work.db")


async def crash(place: str, ledger: str) -> dict[str, str]:
    """Runs a process until it kills itself there; what it said before."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, CRASHING, place, ledger, env=ENV, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await asyncio.wait_for(process.communicate(), LIMIT)
    assert process.returncode == -signal.SIGKILL
    return json.loads(said)


@pytest.mark.breadth
async def test_a_thousand_due_reminders_come_once_and_in_order_over_kills(path: str) -> None:
    """They are due when an owner opens the ledger; it is killed twice while it tells them."""
    await crash("reminding", path)
    left = [int((await crash("reminded", path))["left"]) for _ in range(2)]
    assert 1_000 > left[0] > left[1] > 0
    async with Meantime.open(path, clock=FakeClock(time.time() + 7_200)) as mt:
        thread = mt.thread("conv-1")

        async def all_came() -> bool:
            return not await thread.schedules()

        await until_async(all_came, "the last one has come")
        found: list[str] = []
        while group := await _told(thread):
            found += group
    assert found == [f"{n}" for n in range(1_000)]


async def _told(thread: Thread) -> list[str]:
    async with thread.turn() as turn:
        await turn.ack()
        return [notice.text for notice in turn.notices]


@pytest.mark.behaviour("H1")
@pytest.mark.scenario("001", "Tasks persist across plugin restarts")
@pytest.mark.in_process("an owner with workers counts them, and counts anew in each life")
async def test_all_fields_survive_a_restart(path: str, clock: FakeClock) -> None:
    """Tasks, runs, notices, batches, transcript and journal are the same after a restart."""
    agents = FakeSessionRunner(Reply("read", ("grep",), {"n": 1}, final_message="bye"))

    async def chatty() -> str:
        current().progress(50, phase="half", tool="read")
        current().emit("found", [1, None, "é"])
        return "x" * 100

    async with Meantime.open(path, clock=clock, runners=[agents]) as mt:
        thread = mt.thread("conv-1")
        options: dict[str, Any] = {
            "description": "index",
            "tool_call_id": "c-1",
            "message_id": "m-1",
            "batch": "b",
        }
        small = InlineLimits(50, 5)
        await (await thread.start(Call(chatty), id="a", timeout=9, inline=small, **options)).wait()
        await (await thread.start(Agent("reader", "one", depth=2), id="b", retry="idempotent")).wait()
        await take_turn(thread)
        await clock.advance(5)
        await (await thread.resume("b", "two")).wait()
        await thread.output("a")
        await finished(thread, OSError("no"), id="c", notify=False)
        await thread.clear("c")
        before = await _everything(mt, thread)
    async with Meantime.open(path, clock=clock, runners=[agents]) as mt:
        thread = mt.thread("conv-1")
        assert await _everything(mt, thread) == before
        assert await thread.result("a") == "x" * 100
        await (await thread.resume("b", "three")).wait()
        assert (await thread.get("b")).run.number == 3


async def _everything(mt: Meantime, thread: Thread) -> list[object]:
    tasks = await mt.list("all", history=True)
    return [
        tasks,
        [await thread.runs(task) for task in tasks],
        await mt.notices("unread", "leased", "told", "parked", "muted"),
        await thread.batch("b").count(),
        await thread.transcript.entries(),
        await mt._runtime.events(0, 1_000),
        await thread.list("all"),
        await thread.reminder(),
        await mt.stats(),
    ]


@pytest.mark.behaviour("L27")
@pytest.mark.in_process("work at a worker goes on when its owner closes")
async def test_a_close_stops_and_tells(path: str, clock: FakeClock) -> None:
    """What runs is cancelled by the shutdown and told after it; what is queued waits for the next owner."""
    async with Meantime.open(path, clock=clock) as mt:
        await mt.set_limits(per_thread=1)
        thread = mt.thread("conv-1")
        _, running = await start(thread)
        queued = await thread.start(Call(chores.add, 2, second=3))
    async with Meantime.open(path, clock=clock) as mt:
        thread = mt.thread("conv-1")
        outcome = (await thread.get(running)).outcome
        assert isinstance(outcome, Cancelled)
        assert outcome.by == "shutdown"
        assert [task.outcome for task in await thread.wait(queued.id)] == [Completed(5)]
        assert await take_turn(thread) == [running.id, queued.id]


@pytest.mark.breadth
@pytest.mark.behaviour("L27")
async def test_after_kill_9_unknown_outcomes_end_lost_and_queued_work_runs(path: str) -> None:
    """Unknown outcomes end lost, told once; queued work runs where its function can be found."""
    ids = await crash("working", path)
    async with Meantime.open(path) as mt:
        thread = mt.thread("conv-1")
        await asyncio.wait_for(thread.wait(*ids.values()), LIMIT)
        tasks = {name: await thread.get(id) for name, id in ids.items()}
        for name in ("running", "stopping", "unfindable", "unfaithful"):
            assert isinstance(tasks[name].outcome, Lost), name
        assert tasks["queued"].outcome == Completed(5)
        assert (tasks["running"].description, tasks["running"].run.timeout) == ("index", 60)
        assert (await mt.stats())["slots.running"] == 0
        told = await take_turn(thread)
        assert sorted(told) == sorted(ids.values())
        assert await take_turn(thread) == []
        texts = [message.text for message in await messages(thread)]
        assert sum("was lost" in text for text in texts) == 4
    async with Meantime.open(path) as mt:
        assert await take_turn(mt.thread("conv-1")) == []
        assert {task.id: task.version for task in await mt.list("all")} == {
            task.id: task.version for task in tasks.values()
        }


@pytest.mark.behaviour("P3")
async def test_only_what_is_idempotent_runs_again(path: str) -> None:
    """After the crash it is attempted a second time, with a number that fences the first off."""
    ids = await crash("working", path)
    assert Path(f"{path}.witness").read_text() == "ran\n"
    async with Meantime.open(path) as mt:
        thread = mt.thread("conv-1")
        (task,) = await asyncio.wait_for(thread.wait(ids["again"]), LIMIT)
        assert task.outcome == Completed("the second time")
        assert (task.run.number, task.run.attempt) == (1, 2)
        assert Path(f"{path}.witness").read_text() == "ran\n" * 2
        await thread.wait()
        assert (await take_turn(thread)).count(task.id) == 1


@pytest.mark.breadth
@pytest.mark.behaviour("P4")
async def test_an_agent_is_resumed_from_its_session(path: str) -> None:
    """The run that the crash cut off is lost; its session is still there, and goes on."""
    ids = await crash("agent", path)
    agents = FakeSessionRunner()
    session = agents.new_session(ids["session"], "held")
    session.history.append(("user", "one"))
    async with Meantime.open(path, runners=[agents]) as mt:
        thread = mt.thread("conv-1")
        assert (await thread.get(ids["agent"])).status is Status.LOST
        handle = await thread.resume(ids["agent"], "two")
        assert await handle.result() == "done"
        assert [text for role, text in session.history if role == "user"] == ["one", "two"]
        assert await take_turn(thread) == [handle.id, handle.id]


@pytest.mark.behaviour("N2")
@pytest.mark.parametrize("place", ["leased", "saved", "acked"])
async def test_told_once_wherever_it_was_killed(path: str, place: str) -> None:
    """Before the ack it comes again under its id, and the transcript keeps one; after it, never."""
    said = await crash(place, path)
    async with Meantime.open(path) as mt:
        thread = mt.thread("conv-1")
        transcript = thread.transcript
        async with thread.turn() as turn:
            again = [(notice.id, notice.delivery) for notice in turn.notices]
            assert again == ([] if place == "acked" else [(said["notice"], 2)])
            for notice in turn.notices:
                assert await transcript.has(notice) is (place == "saved")
                transcript.add(notice.id, notice.message())
            await turn.ack(transcript=transcript)
        assert [entry.notice for entry in await transcript.entries()] == [said["notice"]]
        assert await take_turn(thread) == []


@pytest.mark.behaviour("P1")
async def test_accepted_means_durable(path: str) -> None:
    """An id that was given out is there after `kill -9`, with its order."""
    ids = await crash("working", path)
    async with Meantime.open(path) as mt:
        found = {task.id: task for task in await mt.list("all")}
        assert set(found) == set(ids.values())
        assert found[ids["queued"]].work.input == {"args": [2], "kwargs": {"second": 3}}
        await mt.thread("conv-1").wait()
