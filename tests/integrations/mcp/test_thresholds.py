"""F5 and F6: a call of an MCP tool is its result if it is quick, else a task: the same run, never both."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Meantime, TaskFailed, TaskLost, TaskTimedOut, Thread, Tool
from meantime.testing import FakeClock
from outcomes import completed

from .conftest import PATIENT, Peer, seen

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("F5")
async def test_quick_is_the_result_and_no_record(mt: Meantime, thread: Thread, peer: Peer):
    answer = await thread.call(Tool("s/echo", {"text": "quick"}), threshold=LIMIT)
    assert (answer.mode, answer.result) == ("synchronous", "quick")
    assert await thread.list("all") == []
    assert peer.lines("calls") == ["echo"]


@pytest.mark.behaviour("F5")
async def test_slow_is_a_task_and_is_executed_once(thread: Thread, peer: Peer):
    answer = await thread.call(Tool("s/gate", {"mark": "m"}), threshold=0.3)
    assert answer.mode == "background"
    assert answer.task is not None
    peer.open_gate()
    (task,) = await thread.wait(answer.task, timeout=LIMIT)
    assert completed(task).result == "through m"
    assert peer.lines("calls") == ["gate m"]


@pytest.mark.behaviour("F5")
async def test_a_servers_task_that_is_promoted_keeps_its_session(thread: Thread, peer: Peer, era: bool):
    name = "s/task" if era else "s/task_of_2025"
    calling = asyncio.ensure_future(thread.call(Tool(name, {"id": "abc"})))
    await peer.until("waiting", "task")
    await peer.until("asked", "tasks/get abc")
    (call,) = await thread.calls()
    handle = await thread.promote(call.id)
    await seen(handle, lambda task: task.session)
    peer.open_gate()
    assert await handle.result() == "done"
    assert (await calling).task.id == handle.id


@pytest.mark.behaviour("F5")
async def test_failures_raise_for_who_waits(thread: Thread):
    with pytest.raises(TaskFailed, match="the file is not there"):
        await thread.call(Tool("s/fails"))
    with pytest.raises(TaskLost, match="ended with exit code 7"):
        await thread.call(Tool("s/crash"))


@pytest.mark.behaviour("F5")
async def test_a_timeout_cancels_the_call(peer: Peer, era: bool):
    clock, servers = FakeClock(), {"s": peer.server(modern=era)}
    async with Meantime.open(":memory:", settings=PATIENT, servers=servers, clock=clock) as mt:
        calling = asyncio.ensure_future(mt.thread("a").call(Tool("s/hang", {"mark": "m"}), timeout=0.5))
        await peer.until("waiting", "m")
        await clock.advance(0.5)
        with pytest.raises(TaskTimedOut):
            await calling
        await until_async(lambda: len(peer.lines("cancels")) == 1, "the server has the cancellation")


@pytest.mark.behaviour("F5")
async def test_a_caller_that_goes_away_cancels_the_call(thread: Thread, peer: Peer):
    calling = asyncio.ensure_future(thread.call(Tool("s/hang", {"mark": "m"})))
    await peer.until("waiting", "m")
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)
    await until_async(lambda: len(peer.lines("cancels")) == 1, "the server has the cancellation")
