"""N1, N2, N3, N6, N8 and N10 of the matrix: hosts that we push to."""

from __future__ import annotations

import pytest
from tests.waiting import until_async

from jobs import finished, start
from meantime import Meantime, Thread
from meantime.testing import FakeClock, FakeHost

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("N1")
@pytest.mark.embedded
async def test_an_ending_is_pushed_to_the_owning_thread(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    """A host gets what its own thread started, and nothing else."""
    hosts = {"conv-1": FakeHost(), "conv-2": FakeHost()}
    for id, host in hosts.items():
        mt.attach(id, host)
    mine = await finished(thread)
    other = await finished(mt.thread("conv-2"))
    await clock.until(lambda: all(host.transcript for host in hosts.values()))
    assert hosts["conv-1"].tasks("conv-1") == [mine.id]
    assert hosts["conv-2"].tasks("conv-2") == [other.id]
    assert hosts["conv-1"].tasks("conv-2") == []


@pytest.mark.behaviour("N2")
@pytest.mark.embedded
@pytest.mark.parametrize(("grade", "copies"), [("A", 1), ("B", 1), ("C", 2)])
async def test_a_lost_answer_doubles_only_where_a_host_cannot_look(
    mt: Meantime, thread: Thread, clock: FakeClock, grade: str, copies: int
) -> None:
    """The host took it and its answer was lost: A and B are looked into, C gets it again (P5)."""
    host = FakeHost(grade)
    host.accept_then_raise()
    mt.attach("conv-1", host)
    handle = await finished(thread)
    await clock.advance_to_alarm(0.5)
    await clock.until(lambda: len(host.ids("conv-1")) == copies)
    assert host.ids("conv-1") == [f"{handle.id}.1"] * copies
    await _told(mt, 1)


@pytest.mark.behaviour("N2")
@pytest.mark.embedded
async def test_a_host_that_dies_mid_write_gets_the_rest(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    handles = [await finished(thread) for _ in range(3)]
    host = FakeHost("B")
    host.die_mid_write(after=2)
    mt.attach("conv-1", host)
    await clock.advance_to_alarm(0.5)
    await clock.until(lambda: len(host.ids("conv-1")) == 3)
    assert host.tasks("conv-1") == [handle.id for handle in handles]
    assert host.attempts[1] == [f"{handles[2].id}.1"]
    await _told(mt, 3)


async def _told(mt: Meantime, count: int) -> None:
    """The acks follow the deliveries by a commit."""

    async def all_told() -> bool:
        return len(await mt.notices("told")) == count

    await until_async(all_told, f"{count} are told", mt.notices)
    assert await mt.notices() == []


@pytest.mark.behaviour("N3")
@pytest.mark.embedded
async def test_endings_are_pushed_in_the_order_of_completion(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    """By commit, not by start and not by clock; a push keeps it, too."""
    jobs = [await start(thread) for _ in range(5)]
    for place in (4, 2, 0, 3, 1):
        jobs[place][0].finish()
        await jobs[place][1].wait()
        clock.jump(-60)
    wanted = [jobs[place][1].id for place in (4, 2, 0, 3, 1)]
    assert [notice.task_id for notice in await mt.notices("unread")] == wanted
    host = FakeHost()
    mt.attach("conv-1", host)
    await clock.until(lambda: len(host.ids("conv-1")) == 5)
    assert host.tasks("conv-1") == wanted


@pytest.mark.behaviour("N6")
@pytest.mark.embedded
async def test_a_push_waits_for_the_turn_to_end(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    host = FakeHost()
    mt.attach("conv-1", host)
    async with thread.turn():
        handle = await finished(thread)
        await clock.advance(30)
        assert host.attempts == []
    await clock.until(lambda: host.tasks("conv-1") == [handle.id])


@pytest.mark.behaviour("N8")
@pytest.mark.embedded
async def test_rapid_completions_share_a_turn(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    jobs = [await start(thread) for _ in range(8)]
    host = FakeHost()
    async with thread.turn():  # busy while they end
        mt.attach("conv-1", host)
        for job, _ in jobs:
            job.finish()
        await thread.wait(*(handle for _, handle in jobs))
    await clock.until(lambda: len(host.ids("conv-1")) == 8)
    assert len(host.attempts) == 1


@pytest.mark.behaviour("N10")
@pytest.mark.embedded
async def test_a_refused_notice_backs_off_then_is_parked_and_the_rest_flows(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    """A delivery that fails is tried again, later and later; after five it is parked, visibly."""
    bad, good, better = [await finished(thread, description=name) for name in ("bad", "good", "better")]
    host = FakeHost()
    host.choke_on(bad.id)
    mt.attach("conv-1", host)
    for wait in (0.5, 1.0, 2.0, 5.0, 15.0):
        tries = len(host.attempts)
        await clock.advance_to_alarm(wait)
        await clock.until(lambda tries=tries: len(host.attempts) > tries)
    await clock.until(lambda: len(host.ids("conv-1")) == 2)
    assert host.tasks("conv-1") == [good.id, better.id]
    assert sum(f"{bad.id}.1" in attempt for attempt in host.attempts) == 5
    await _parked(mt, bad.id)
    assert "1 parked after failed deliveries" in await thread.reminder()
    assert (await mt.stats())["notices.parked"] == 1
    host.swallow(bad.id)
    assert await thread.unpark() == 1
    await clock.until(lambda: host.tasks("conv-1") == [good.id, better.id, bad.id])
    assert await thread.unpark() == 0


async def _parked(mt: Meantime, id: str) -> None:
    async def only_parked() -> bool:
        return [notice.state for notice in await mt.notices()] == ["parked"]

    await until_async(only_parked, "only the parked one is left", mt.notices)
    assert [notice.task_id for notice in await mt.notices("parked")] == [id]


@pytest.mark.behaviour("N10")
@pytest.mark.embedded
async def test_a_refusal_that_passes_costs_nothing(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    host = FakeHost()
    host.refuse(1)
    mt.attach("conv-1", host)
    handle = await finished(thread)
    await clock.advance_to_alarm(0.5)
    await clock.until(lambda: host.tasks("conv-1") == [handle.id])
    assert len(host.attempts) == 2
