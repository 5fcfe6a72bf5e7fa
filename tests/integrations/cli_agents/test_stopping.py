"""P8: what is stopped is gone, with everything that it started."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from meantime import Meantime, Status, Thread, TimedOut
from meantime.testing import FakeClock
from outcomes import unfinished

from .conftest import QUICK, Program, ended, lives, one, shown

pytestmark = [pytest.mark.anyio, pytest.mark.processes]


@pytest.mark.behaviour("P8")
async def test_a_cancel_ends_it_and_its_children(thread: Thread, program: Program):
    """Also one in a session of its own."""
    handle = await thread.start(one({"say": "I begin."}, {"child": 1}, {"gate": "gate"}))
    await program.waits()
    answer = await thread.cancel(handle.id, wait=True)
    assert answer.task.status is Status.CANCELLED
    assert unfinished(answer.task).partial == "I begin."
    assert not lives(program.given[0]["pid"])
    assert not lives(program.noted("pids")[0])
    assert shown(await thread.lines(handle.id))[1:] == ["assistant text: I begin."]


@pytest.mark.behaviour("P8")
async def test_one_that_will_not_hear_is_killed(thread: Thread, program: Program):
    handle = await thread.start(one({"stubborn": 1}, {"child": 1}, {"gate": "gate"}))
    await program.waits()
    answer = await thread.cancel(handle.id, wait=True)
    assert answer.task.status is Status.CANCELLED
    assert not lives(program.given[0]["pid"])
    assert not lives(program.noted("pids")[0])


async def test_one_that_is_cancelled_at_once_is_not_begun_or_gone(thread: Thread, program: Program):
    handles = [await thread.start(one({"gate": "gate"})) for _ in range(3)]
    answers = await asyncio.gather(*(thread.cancel(handle.id, wait=True) for handle in handles))
    assert [answer.task.status for answer in answers] == [Status.CANCELLED] * 3
    assert not any(lives(given["pid"]) for given in program.given)


async def test_a_stopped_session_can_be_gone_on_with(thread: Thread, program: Program):
    handle = await thread.start(one({"say": "I begin."}, {"gate": "gate"}))
    await program.waits()
    await thread.cancel(handle.id, wait=True)
    await thread.resume(handle.id, "Go on.")
    assert (await ended(handle, thread)).outcome.result == "heard 1: Go on."


async def test_a_timeout_ends_it(ledger: Path, program: Program):
    clock = FakeClock()
    agents = {"one": program.settings()}
    async with Meantime.open(ledger, settings=QUICK, agents=agents, clock=clock) as mt:
        thread = mt.thread("a")
        handle = await thread.start(one({"say": "I begin."}, {"child": 1}, {"gate": "gate"}), timeout=1.0)
        await program.waits()
        await clock.advance(1.0)
        task = await ended(handle, thread)
    assert isinstance(task.outcome, TimedOut)
    assert task.outcome.partial == "I begin."
    assert not lives(program.noted("pids")[0])


async def test_what_a_turn_leaves_behind_ends_with_it(thread: Thread, program: Program):
    await ended(await thread.start(one({"child": 1}, {"say": "Done."})), thread)
    assert not lives(program.noted("pids")[0])


async def test_unless_it_is_to_be_kept(ledger: Path, program: Program):
    """A server that an agent starts for its user; a cancel ends it all the same."""
    keeps = program.settings(options={"leftovers": "keep"})
    async with Meantime.open(ledger, settings=QUICK, agents={"one": keeps}) as mt:
        thread = mt.thread("a")
        await ended(await thread.start(one({"child": 1}, {"say": "Done."})), thread)
        (kept,) = program.noted("pids")
        assert lives(kept)
        handle = await thread.start(one({"child": 1}, {"gate": "gate"}))
        await program.waits()
        await thread.cancel(handle.id, wait=True)
        assert not lives(program.noted("pids")[1])
        assert lives(kept)

    os.kill(kept, signal.SIGKILL)
