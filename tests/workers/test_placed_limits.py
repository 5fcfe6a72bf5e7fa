"""Limits, fairness, batches and depth of work at workers: decided by the owner, as for work of its own."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT, pause_async, until_async

from meantime import Call, LimitReached, Limits, Shell, Status, current

from . import jobs
from .conftest import PLACE, Site

pytestmark = [pytest.mark.anyio, pytest.mark.breadth]


async def test_at_most_twice_the_free_slots_are_offered(site: Site):
    mt = await site.open(limits=Limits(per_thread=-1))
    worker = await site.worker(slots=3)
    gate = site.folder / "go"
    thread = mt.thread("a")
    handles = [await thread.start(Call(jobs.waits_for, str(gate)), place=PLACE) for _ in range(20)]
    await until_async(lambda: worker.state.running == 3, "three runs are under way")
    assert len(site.pools.state.offers) <= 3  # those that were out already: no slot is free for more
    assert [(await one.get()).status for one in handles].count(Status.RUNNING) == 3
    gate.touch()
    for one in handles:
        assert (await one.wait(LIMIT)).status is Status.COMPLETED


async def test_offers_are_at_most_twice_the_slots_while_nobody_claims(site: Site):
    mt = await site.open(limits=Limits(per_thread=-1))
    worker = await site.worker(slots=3)
    await until_async(lambda: site.pools.about(), "the owner knows the worker")
    worker._carrier.pull = _nothing  # type: ignore[method-assign]
    await asyncio.sleep(0)
    for _ in range(20):
        await mt.thread("a").start(Call(jobs.add, 1, 1), place=PLACE)
    assert len(site.pools.state.offers) <= 6
    await mt.thread("a").cancel_all()


async def _nothing(pool: str, free: int, wait: float) -> list[object]:
    await pause_async(0.05, "a pull that finds nothing")
    return []


async def test_a_thread_has_its_own_limit_at_workers_too(site: Site):
    mt = await site.open(limits=Limits(per_thread=2))
    worker = await site.worker(slots=8)
    gate = site.folder / "go"
    mine = [await mt.thread("a").start(Call(jobs.waits_for, str(gate)), place=PLACE) for _ in range(4)]
    other = await mt.thread("b").start(Call(jobs.add, 1, 2), place=PLACE)
    assert await other.result(LIMIT) == 3
    await until_async(lambda: worker.state.running == 2, "two runs are under way")
    assert [(await one.get()).status.value for one in mine] == ["running", "running", "queued", "queued"]
    with pytest.raises(LimitReached, match="2 of at most 2 call tasks"):
        await mt.thread("a").start(Call(jobs.add, 1, 2), place=PLACE, on_limit="reject")
    gate.touch()
    for one in mine:
        assert (await one.wait(LIMIT)).status is Status.COMPLETED


async def test_a_thread_does_not_starve_another_in_a_pool(site: Site):
    mt = await site.open(limits=Limits(per_thread=-1))
    await site.worker(slots=1)
    gate, log = site.folder / "go", site.folder / "log"
    await mt.thread("greedy").start(Call(jobs.waits_for, str(gate)), place=PLACE)
    await until_async(lambda: site.workers["w1"].state.running == 1, "the run is under way")
    greedy = [await mt.thread("greedy").start(Call(jobs.log_to, str(log), n), place=PLACE) for n in range(10)]
    modest = await mt.thread("modest").start(Call(jobs.log_to, str(log), 99), place=PLACE)
    gate.touch()
    for one in (*greedy, modest):
        await one.wait(LIMIT)
    assert [int(line) for line in log.read_text().split()].index(99) <= 3  # two offers were out already


async def test_a_function_does_not_starve_another_in_a_pool(site: Site):
    mt = await site.open(limits=Limits(per_thread=-1))
    await site.worker(slots=1)
    gate, log = site.folder / "go", site.folder / "log"
    thread = mt.thread("a")
    await thread.start(Call(jobs.waits_for, str(gate)), place=PLACE)
    await until_async(lambda: site.workers["w1"].state.running == 1, "the run is under way")
    many = [await thread.start(Call(jobs.log_to, str(log), n), place=PLACE) for n in range(10)]
    command = await thread.start(Shell(f"echo 99 >> {log}"), place=PLACE)
    gate.touch()
    for one in (*many, command):
        await one.wait(LIMIT)
    assert [int(line) for line in log.read_text().split()].index(99) <= 4


async def test_a_batch_of_placed_work_is_counted_and_told(site: Site):
    mt = await site.open()
    await site.worker()
    thread = mt.thread("a")
    batch = thread.batch("b1")
    for n in range(3):
        await batch.start(Call(jobs.add, n, 0), place=PLACE)
    await asyncio.wait_for(batch.wait(), LIMIT)
    assert (await batch.count()).ended == 3
    async with thread.turn() as turn:
        assert [notice.batch.ended for notice in turn.notices if notice.batch] == [1, 2, 3]
        await turn.ack()


async def test_an_idle_thread_is_woken_by_placed_work(site: Site):
    mt = await site.open()
    await site.worker()
    thread = mt.thread("a")
    waiting = asyncio.ensure_future(anext(aiter(thread.wakeups())))
    await thread.start(Call(jobs.add, 1, 2), place=PLACE)
    await asyncio.wait_for(waiting, LIMIT)


async def test_the_depth_of_work_that_starts_placed_work_is_counted(site: Site):
    mt = await site.open(limits=Limits(depth=0))
    await site.worker()
    thread = mt.thread("a")

    async def parent() -> None:
        assert current().task_id
        await thread.start(Call(jobs.add, 1, 2), place=PLACE)

    task = await (await thread.start(Call(parent), place="here")).wait(LIMIT)
    assert task.status is Status.FAILED
    assert "may not start more" in str(task.outcome)


async def test_a_full_queue_refuses_placed_work(site: Site):
    mt = await site.open(limits=Limits(queued=2))
    thread = mt.thread("a")
    for _ in range(2):
        await thread.start(Call(jobs.add, 1, 2), place=PLACE)
    with pytest.raises(LimitReached, match="2 tasks wait"):
        await thread.start(Call(jobs.add, 1, 2), place=PLACE)
    await thread.cancel_all()


async def test_the_numbers_of_workers_are_counted(site: Site):
    mt = await site.open()
    await site.worker("w1")
    await site.worker("w2", pool="gpu")
    thread = mt.thread("a")
    assert await (await thread.start(Call(jobs.add, 1, 2), place=PLACE)).result(LIMIT) == 3
    lost = await thread.start(Call(jobs.forever), place=PLACE)
    await until_async(lambda: site.workers["w1"].state.running, "the run is under way")
    stats = await mt.stats()
    assert {name: stats[f"workers.{name}"] for name in ("offered", "claimed", "carrier_up", "following")} == {
        "offered": 2, "claimed": 2, "carrier_up": 1, "following": 1,
    }  # fmt: skip
    assert (stats["workers.pool.default"], stats["workers.pool.gpu"]) == (1, 1)
    await site.lose("w1")
    assert (await lost.wait(LIMIT)).status is Status.LOST
    waits = await thread.start(Call(jobs.add, 1, 2), place=PLACE)
    stats = await mt.stats()
    assert (stats["workers.lost_silent"], stats["workers.unclaimed"]) == (1, 0)  # nobody can perform it
    site.broker.stop()
    assert (await mt.stats())["workers.carrier_up"] == 0
    await waits.cancel()
