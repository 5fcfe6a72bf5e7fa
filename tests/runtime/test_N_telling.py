"""N1 to N11 of the matrix: each ending reaches its thread once, in order, at a boundary."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from jobs import eventually, finished, messages, start, take_turn
from meantime import Call, LeaseLost, Meantime, NotFound, Status, Thread, current
from meantime.testing import FakeClock, FakeHost

pytestmark = pytest.mark.anyio


async def test_N1_pushed_to_the_owning_thread(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
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


async def test_N2_a_turn_that_fails_is_told_again_under_the_same_id(thread: Thread) -> None:
    """Without the ack the notices come back; the transcript keeps one entry, whatever happens."""
    await finished(thread)
    transcript = thread.transcript
    with suppress(ZeroDivisionError):
        async with thread.turn() as turn:
            (first,) = turn.notices
            transcript.add(first.id, first.message())
            await transcript.save()
            raise ZeroDivisionError
    async with thread.turn() as turn:
        (again,) = turn.notices
        assert (again.id, again.delivery) == (first.id, 2)
        assert await transcript.has(again)
        transcript.add(again.id, again.message())
        await turn.ack(transcript=transcript)
    assert len(await messages(thread)) == 1
    assert await take_turn(thread) == []


async def test_N2_two_turns_never_hold_the_same_notice(thread: Thread) -> None:
    await finished(thread)
    async with thread.turn() as first, thread.turn() as second:
        assert len(first.notices) == 1
        assert second.notices == []
        await first.ack()
        await second.ack()
    assert await take_turn(thread) == []


async def test_N2_a_turn_that_lapsed_cannot_ack(thread: Thread, clock: FakeClock) -> None:
    """A lease of seconds that nobody renews gives its notices to the next turn, and the late ack is told."""
    handle = await finished(thread)
    async with thread.turn(lease=30) as dead:
        await clock.advance(20)
        await dead.renew()
        await clock.advance(20)
        await clock.settle()
        async with thread.turn() as other:
            assert other.notices == []
        await clock.advance(10)
        await anext(thread.wakeups())
        assert await take_turn(thread) == [handle.id]
        with pytest.raises(LeaseLost) as problem:
            await dead.ack(*dead.notices)
        assert problem.value.notices == (f"{handle.id}.1",)
    assert len(await messages(thread)) == 1


async def test_N2_only_an_open_turn_can_ack(thread: Thread) -> None:
    async with thread.turn() as turn:
        pass
    with pytest.raises(NotFound):
        await turn.ack()


@pytest.mark.parametrize(("grade", "copies"), [("A", 1), ("B", 1), ("C", 2)])
async def test_N2_a_lost_answer_doubles_only_where_a_host_cannot_look(
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


async def test_N2_a_host_that_dies_mid_write_gets_the_rest(
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

    await eventually(all_told)
    assert await mt.notices() == []


async def test_N3_completion_order(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
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


async def test_N4_only_endings_are_told(mt: Meantime, thread: Thread) -> None:
    """Queued, started, progress and cancelling are events for observers, never notices."""
    await mt.set_limits(per_thread=1)
    job, first = await start(thread, stubborn=True)
    second = await thread.start(Call(_say))
    await first.cancel()
    assert await take_turn(thread) == []
    await job.asked_to_stop.wait()
    job.finish()
    await thread.wait(first, second)
    assert await take_turn(thread) == [first.id, second.id]
    kinds: list[str] = []
    async for event in mt.events():
        kinds.append(event.kind)
        if kinds.count("ended") == 2:
            break
    assert set(kinds) >= {"submitted", "started", "cancelling", "ended"}


async def _say() -> None:
    current().progress(10, phase="half")


async def test_N5_idle_triggers_a_turn(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    """Whoever waits is woken; whoever comes later is woken at once; once told, nobody is."""
    waking = asyncio.ensure_future(anext(thread.wakeups()))
    await clock.settle()
    assert not waking.done()
    handle = await finished(thread)
    await waking
    await anext(thread.wakeups())
    assert await take_turn(thread) == [handle.id]
    waking = asyncio.ensure_future(anext(thread.wakeups()))
    await clock.advance(60)
    assert not waking.done()
    waking.cancel()


async def test_N5_a_missed_wake_is_made_up_for(
    mt: Meantime, thread: Thread, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a signal ever be lost, the reconciler looks again within five seconds (P7)."""
    waking = asyncio.ensure_future(anext(thread.wakeups()))
    await clock.settle()
    with monkeypatch.context() as deaf:
        deaf.setattr(mt._runtime.announcing, "signal", lambda thread: None)
        await finished(thread)
    await clock.settle()
    assert not waking.done()
    await clock.advance_to_alarm(5)
    await asyncio.wait_for(waking, 10)


async def test_N6_busy_waits_for_the_boundary(thread: Thread) -> None:
    """What ends during a turn comes at its next boundary, or after it, never in between."""
    (first, one), (second, two) = await start(thread), await start(thread)
    async with thread.turn() as turn:
        first.finish()
        await one.wait()
        assert turn.notices == []
        assert [notice.task_id for notice in await turn.boundary()] == [one.id]
        assert [notice.task_id for notice in turn.notices] == [one.id]
        second.finish()
        await two.wait()
        await turn.ack()
    await anext(thread.wakeups())  # not stranded: the end of the turn looks again
    assert await take_turn(thread) == [two.id]


async def test_N6_a_push_waits_for_the_turn_to_end(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    host = FakeHost()
    mt.attach("conv-1", host)
    async with thread.turn():
        handle = await finished(thread)
        await clock.advance(30)
        assert host.attempts == []
    await clock.until(lambda: host.tasks("conv-1") == [handle.id])


async def test_N7_the_reminder(thread: Thread, clock: FakeClock) -> None:
    """Running, and ended but not told; nothing to say is the empty text; reading it settles nothing."""
    assert await thread.reminder() == ""
    job, _ = await start(thread, description="index the repo", id="t_running1")
    await clock.advance(150)
    await finished(thread, description="read the docs", id="t_ended111")
    text = await thread.reminder()
    assert "1 active, 1 ended, not yet told" in text
    assert "- running1 running 2m 30s: index the repo" in text
    assert "- ended111 completed: read the docs" in text
    assert await thread.reminder() == text
    async with thread.turn() as turn:
        assert "not yet told" in await turn.reminder()  # until the ack
        await turn.ack()
        assert "not yet told" not in await turn.reminder()
    job.finish()
    await thread.wait()
    await take_turn(thread)
    assert await thread.reminder() == ""


async def test_N8_rapid_completions_share_a_turn(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    jobs = [await start(thread) for _ in range(8)]
    host = FakeHost()
    async with thread.turn():  # busy while they end
        mt.attach("conv-1", host)
        for job, _ in jobs:
            job.finish()
        await thread.wait(*(handle for _, handle in jobs))
    await clock.until(lambda: len(host.ids("conv-1")) == 8)
    assert len(host.attempts) == 1


async def test_N9_only_what_was_included_counts_as_told(mt: Meantime, thread: Thread) -> None:
    """An ack of some leaves the others; a turn of one leases one."""
    ids = [(await finished(thread)).id for _ in range(4)]
    async with thread.turn(limit=2) as turn:
        assert [notice.task_id for notice in turn.notices] == ids[:2]
        await turn.ack(turn.notices[0])
    assert [notice.task_id for notice in await mt.notices("told")] == ids[:1]
    async with thread.turn() as turn:
        assert [notice.task_id for notice in turn.notices] == ids[1:]
        await turn.ack(f"{ids[2]}.1")
    assert await take_turn(thread) == [ids[1], ids[3]]


async def test_N10_back_off_then_parked_and_the_rest_flows(
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

    await eventually(only_parked)
    assert [notice.task_id for notice in await mt.notices("parked")] == [id]


async def test_N10_a_refusal_that_passes_costs_nothing(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    host = FakeHost()
    host.refuse(1)
    mt.attach("conv-1", host)
    handle = await finished(thread)
    await clock.advance_to_alarm(0.5)
    await clock.until(lambda: host.tasks("conv-1") == [handle.id])
    assert len(host.attempts) == 2


async def test_N11_every_ending_is_told(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    """Cancelled, timed out and cancelled while queued, as well as completed and failed."""
    await mt.set_limits(per_thread=1)
    _, timed_out = await start(thread, timeout=5)
    queued = await thread.start(Call(len, ""))
    await queued.cancel()
    await clock.advance(5)
    await timed_out.wait()
    _, cancelled = await start(thread)
    await cancelled.cancel(wait=True)
    failed = await finished(thread, OSError("no"))
    async with thread.turn() as turn:
        told = [(notice.task_id, notice.task.status) for notice in turn.notices]
        texts = [message.text for message in turn.render()]
        await turn.ack()
    assert told == [
        (queued.id, Status.CANCELLED),
        (timed_out.id, Status.TIMED_OUT),
        (cancelled.id, Status.CANCELLED),
        (failed.id, Status.FAILED),
    ]
    assert ["was cancelled" in texts[0], "timed out (5 s)" in texts[1], "failed" in texts[3]] == [True] * 3
