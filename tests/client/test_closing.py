"""A connection is closed in every state it can be in: soon, and with nothing left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from jobs import Job, finished, start
from meantime import Call, Closed, Meantime, Status
from meantime.testing import FakeHost
from outcomes import completed

from .pair import Pair

pytestmark = pytest.mark.anyio
ROUNDS = 20
SOON = LIMIT / 2  # `patience` is longer, and nobody waits for that


def lives() -> list[str]:
    """Descriptors of processes that this one watches."""
    places = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return [place for place in places if os.path.lexists(place) and "pidfd" in os.readlink(place)]


async def test_running_functions_are_stopped_and_recorded(pair: Pair):
    job, handle = await start(pair.mt.thread("a"))
    await asyncio.wait_for(pair.mt.close(), SOON)
    assert job.asked_to_stop.is_set()
    assert (await pair.owner.get(handle.id)).status is Status.CANCELLED
    await until_async(lambda: not pair.executors._known, "the owner has forgotten the process")


async def test_a_call_that_somebody_waits_for_is_stopped(pair: Pair):
    job = Job()
    calling = asyncio.create_task(pair.mt.thread("a").call(job.call))
    await job.started.wait()
    await asyncio.wait_for(pair.mt.close(), SOON)
    with pytest.raises(Closed):
        await calling
    assert job.asked_to_stop.is_set()
    await until_async(lambda: not pair.executors._known, "the owner has forgotten the process")


async def test_without_an_owner(pair: Pair):
    job, _ = await start(pair.mt.thread("a"))
    await pair.owner.close()
    await until_async(lambda: not pair.is_up(), "the connection is lost")
    waiting = asyncio.create_task(pair.mt.stats())
    await asyncio.sleep(0)
    await asyncio.wait_for(pair.mt.close(), SOON)
    with pytest.raises(Closed):
        await waiting
    assert job.asked_to_stop.is_set()
    await pair.open_owner()


async def test_without_an_owner_while_a_host_is_being_told(pair: Pair):
    telling = asyncio.Event()

    class Slow(FakeHost):
        async def deliver(self, thread, notices):
            telling.set()
            await asyncio.Event().wait()

    pair.mt.attach("a", Slow())
    await finished(pair.mt.thread("a"))
    await asyncio.wait_for(telling.wait(), SOON)
    await pair.owner.close()
    await until_async(lambda: not pair.is_up(), "the connection is lost")
    await asyncio.wait_for(pair.mt.close(), SOON)
    await pair.open_owner()
    assert len(await pair.owner.notices("unread")) == 1


async def test_in_the_middle_of_a_turn_nothing_failed(pair: Pair):
    """To close is no failed delivery: what was not acknowledged comes again, and is never parked for it."""
    await finished(pair.mt.thread("a"))

    async def back() -> bool:
        return len(await pair.owner.notices("unread")) == 1

    for _ in range(6):  # five failures park
        async with Meantime.connect(pair.link) as mt:
            opened = await mt._runtime.open_turn("a", lease=None, limit=10)
            assert len(opened.notices) == 1
        await until_async(back, "what it held is unread again")


async def test_closing_twice_is_harmless(pair: Pair):
    await pair.mt.close()
    await pair.mt.close()
    with pytest.raises(Closed):
        await pair.mt.stats()


async def test_an_owner_that_stops_everything_stops_functions_elsewhere(pair: Pair):
    job, handle = await start(pair.mt.thread("a"))
    await asyncio.wait_for(pair.owner.close(on_close="stop"), SOON)
    assert job.asked_to_stop.is_set()
    await pair.open_owner()
    assert (await pair.mt.get(handle.id)).status is Status.CANCELLED
    await until_async(lambda: not pair.held(), "its process holds no function any more")


async def test_an_owner_that_keeps_leaves_functions_to_the_next(pair: Pair):
    job, handle = await start(pair.mt.thread("a"))
    asking = asyncio.create_task(handle.wait())
    await asyncio.wait_for(pair.owner.close(on_close="keep"), SOON)
    assert not job.asked_to_stop.is_set()
    await pair.open_owner()
    job.finish(5)
    await asyncio.wait_for(asking, LIMIT)
    assert await handle.result() == 5


async def test_no_descriptor_and_no_executor_is_left(pair: Pair):
    """A process may connect and close as often as it likes, as long as it lives."""
    for _ in range(ROUNDS):
        async with Meantime.connect(pair.link) as mt:
            await mt.stats()
    await until_async(lambda: len(pair.executors._known) == 1, "the owner has forgotten the other processes")
    await until_async(lambda: len(lives()) == 1, "one process is watched")


async def test_no_descriptor_is_left_by_broken_connections(pair: Pair):
    for _ in range(ROUNDS):
        await pair.cut_and_back()
    await until_async(lambda: len(lives()) == 1, "one process is watched")
    await pair.owner.close()
    assert lives() == []
    await pair.open_owner()


INTERRUPTED = """
import asyncio, sys
from meantime import Call, Meantime

async def work():
    print("running", flush=True)
    await asyncio.Event().wait()

async def main():
    async with Meantime.connect(sys.argv[1]) as mt:
        handle = await mt.thread("a").start(Call(work), id="interrupted")
        await handle.wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
async def test_a_process_that_is_interrupted_or_killed(pair: Pair, number: signal.Signals):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", INTERRUPTED, pair.link,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), LIMIT) == b"running\n"
    process.send_signal(number)
    await asyncio.wait_for(process.wait(), LIMIT)
    (task,) = await pair.owner.thread("a").wait("interrupted", timeout=LIMIT)
    assert task.status == ("cancelled" if number == signal.SIGINT else "lost")
    assert len(await pair.owner.notices("unread")) == 1


FORKED = """
import asyncio, os, sys
from meantime import Call, Meantime
from meantime.blocking import Meantime as Blocking

with Blocking.connect(sys.argv[1]) as mt:
    handle = mt.thread("a").start(Call(int, "5"))
    assert handle.result() == 5, "before"
    child = os.fork()
    if child == 0:
        try:
            mt.stats()
        except ValueError as problem:
            os._exit(7 if "fork" in str(problem) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7, "in the child"
    assert mt.thread("a").call(Call(int, "6")).result == 6, "after"
"""


async def test_a_blocking_client_and_its_forked_child(pair: Pair, tmp_path: Path):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", FORKED, pair.link, stderr=asyncio.subprocess.PIPE
    )
    _, said = await asyncio.wait_for(process.communicate(), LIMIT)
    assert process.returncode == 0, said.decode()


async def test_work_inside_work_knows_its_parent(pair: Pair):
    async def child():
        return "deep"

    async def parent():
        handle = await pair.mt.thread("a").start(Call(child))
        await handle.wait()
        return handle.id

    handle = await pair.mt.thread("a").start(Call(parent))
    (done,) = await pair.mt.thread("a").wait(handle)
    inner = await pair.mt.get(completed(done).result)
    assert (inner.parent, inner.depth) == (handle.id, 1)


@pytest.mark.behaviour("H2")
async def test_limits_that_others_change_are_known(pair: Pair):
    await pair.owner.set_limits(per_thread=3)
    await until_async(lambda: pair.mt.limits().per_thread == 3, "the limit is known")
    await pair.mt.set_limits(total=7)
    assert (pair.owner.limits().per_thread, pair.owner.limits().total) == (3, 7)
    assert pair.mt.limits() == pair.owner.limits()
