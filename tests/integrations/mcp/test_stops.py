"""Cancel is sent, and the task ends whatever the server does with it; late replies reach nobody."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT, until_async

from meantime import Meantime, Settings, Status, Thread, Tool
from meantime.testing import FakeClock
from outcomes import cancelled, completed, failed

from .conftest import PATIENT, Peer, ended, lives, runner_of

pytestmark = pytest.mark.anyio
INSISTENT = Settings(stop_grace=0.1, stop_deadline=LIMIT)


@pytest.mark.behaviour("F4", "L6")
async def test_a_cancel_is_sent_and_the_task_ends_though_the_server_ignores_it(thread: Thread, peer: Peer):
    handle = await thread.start(Tool("s/hang", {"mark": "m"}))
    await peer.until("waiting", "m")
    answer = await thread.cancel(handle, wait=True)
    assert answer.task.status is Status.CANCELLED
    assert not cancelled(answer.task).abandoned
    await until_async(lambda: len(peer.lines("cancels")) == 1, "the server has the cancellation")


@pytest.mark.behaviour("F4")
async def test_a_late_reply_reaches_no_other_call(thread: Thread, peer: Peer):
    late = await thread.start(Tool("s/late"))
    await peer.until("waiting", "late")
    await thread.cancel(late, wait=True)
    others = [await thread.start(Tool("s/gate", {"mark": str(n), "gate": "end"})) for n in range(5)]
    await until_async(lambda: len(peer.lines("waiting")) == 6, "five more calls are under way")
    peer.open_gate()
    await peer.until("waiting", "answered late")
    peer.open_gate("end")
    tasks = await thread.wait(*others, timeout=LIMIT)
    assert [completed(task).result for task in tasks] == [f"through {n}" for n in range(5)]
    assert (await late.get()).status is Status.CANCELLED


@pytest.mark.behaviour("L13")
async def test_a_timeout_is_a_timeout_and_its_late_reply_is_dropped(peer: Peer, era: bool):
    clock, servers = FakeClock(), {"s": peer.server(modern=era)}
    async with Meantime.open(":memory:", settings=PATIENT, servers=servers, clock=clock) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Tool("s/late"), timeout=0.5)
        await peer.until("waiting", "late")
        await clock.advance(0.5)
        (task,) = await thread.wait(handle)
        assert task.status is Status.TIMED_OUT
        peer.open_gate()
        await peer.until("waiting", "answered late")
        assert completed(await ended(thread, "s/echo", text="mine")).result == "mine"
        assert (await handle.get()).status is Status.TIMED_OUT


@pytest.mark.breadth
@pytest.mark.parametrize("settings", [INSISTENT])
async def test_a_server_that_reads_nothing_more_holds_nobody(mt: Meantime, thread: Thread, peer: Peer):
    """No answer comes, and with a full pipe nothing can be sent."""
    stuck = await thread.start(Tool("s/stuck"))
    await peer.until("waiting", "stuck")
    full = [await thread.start(Tool("s/echo", {"text": "x" * 400_000})) for _ in range(3)]
    await until_async(lambda: unread(mt), "the pipe is full")
    answers = await asyncio.gather(*(thread.cancel(one, wait=True) for one in (stuck, *full)))
    assert {answer.task.status for answer in answers} == {Status.CANCELLED}


def unread(mt: Meantime) -> int:
    """Bytes for the server that its pipe does not take."""
    connection = runner_of(mt)._connections["s"]._connection
    assert connection is not None
    assert connection._wire is not None
    return connection._wire._process.stdin.transport.get_write_buffer_size()


@pytest.mark.breadth
@pytest.mark.parametrize("settings", [INSISTENT])
async def test_what_waits_for_a_server_is_bounded(
    mt: Meantime, thread: Thread, peer: Peer, monkeypatch: pytest.MonkeyPatch
):
    await ended(thread, "s/echo")  # the SDK is loaded
    from meantime.integrations.mcp.wire import stdio_transport

    monkeypatch.setattr(stdio_transport, "MOST_WAITING", 1 << 20)
    stuck = await thread.start(Tool("s/stuck"))
    await peer.until("waiting", "stuck")
    full = [await thread.start(Tool("s/echo", {"text": "x" * 900_000})) for _ in range(6)]
    first = next(task for task in await thread.wait(*full, until="any", timeout=LIMIT) if task.ended)
    assert failed(first).message.endswith("Connection closed")
    await asyncio.gather(*(thread.cancel(one, wait=True) for one in (stuck, *full)))


async def test_what_was_cancelled_in_the_queue_is_never_sent(peer: Peer, mt: Meantime, thread: Thread):
    await mt.set_limits(per_thread=1)
    first = await thread.start(Tool("s/gate", {"mark": "first"}))
    second = await thread.start(Tool("s/echo", {"mark": "second"}))
    await peer.until("waiting", "first")
    await thread.cancel(second, wait=True)
    peer.open_gate()
    await thread.wait(first, timeout=LIMIT)
    assert peer.lines("calls") == ["gate first"]


async def test_closing_stops_calls_and_the_server(peer: Peer, era: bool):
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": peer.server(modern=era)}) as mt:
        handle = await mt.thread("a").start(Tool("s/hang", {"mark": "m"}))
        await peer.until("waiting", "m")
    assert handle.task.id
    assert not any(map(lives, peer.pids))


@pytest.mark.breadth
@pytest.mark.parametrize("start", ["clings", "well"])
async def test_nothing_of_a_server_outlives_its_close(peer: Peer, era: bool, start: str):
    """Not one that ignores the end of its stdin, and not what it double-forked."""
    server = peer.server(start, modern=era)
    async with Meantime.open(":memory:", settings=PATIENT, servers={"s": server}) as mt:
        await ended(mt.thread("a"), "s/leaves")
        await until_async(lambda: len(peer.pids) == 2, "the server has left a child")
        assert all(map(lives, peer.pids))
    await until_async(lambda: not any(map(lives, peer.pids)), "the server and its child are gone")
