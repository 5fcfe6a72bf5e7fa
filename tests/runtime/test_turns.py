"""N2 to N9 of the matrix: each ending reaches its thread once, in order, at a boundary."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress

import pytest
from tests.waiting import LIMIT

from jobs import finished, messages, start, take_turn
from meantime import Call, InvalidInput, LeaseLost, Meantime, NotFound, Status, Thread, current
from meantime.testing import FakeClock
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("N2")
async def test_a_turn_that_fails_is_told_again_under_the_same_id(thread: Thread) -> None:
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


@pytest.mark.behaviour("N2")
async def test_what_the_conversation_holds_already_is_not_fresh(thread: Thread) -> None:
    """Class B: the agent's own history is looked into, and a notice that it holds only needs its ack."""
    first, second, third = [(await finished(thread)).id for _ in range(3)]
    async with thread.turn() as turn:
        assert [notice.task_id for notice in turn.fresh()] == [first, second, third]
        assert [notice.task_id for notice in turn.fresh({f"{first}.1"})] == [second, third]
        await turn.output(second)
        assert [notice.task_id for notice in turn.fresh([f"{first}.1"])] == [third], "it was read just now"
        with pytest.raises(InvalidInput, match="known must be a list"):
            turn.fresh(f"{first}.1")
        await turn.ack()
    assert await take_turn(thread) == []


@pytest.mark.behaviour("N2")
async def test_reads_through_a_toolset_belong_to_the_turn_that_was_begun_last(
    mt: Meantime, thread: Thread
) -> None:
    toolset = thread.toolset()
    for _ in range(2):
        task = (await finished(thread)).id
        async with thread.turn() as turn:
            toolset.begin(turn)
            assert "done" in (await toolset.call("output", {"id": task})).text
            assert turn.fresh() == []
            assert await turn.boundary() == []
            await turn.ack()
        assert await mt.notices() == []


@pytest.mark.behaviour("N2")
async def test_two_turns_never_hold_the_same_notice(thread: Thread) -> None:
    await finished(thread)
    async with thread.turn() as first, thread.turn() as second:
        assert len(first.notices) == 1
        assert second.notices == []
        await first.ack()
        await second.ack()
    assert await take_turn(thread) == []


@pytest.mark.behaviour("N2")
@pytest.mark.embedded
async def test_a_turn_that_lapsed_cannot_ack(thread: Thread, clock: FakeClock) -> None:
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


@pytest.mark.behaviour("N2")
async def test_only_an_open_turn_can_ack(thread: Thread) -> None:
    async with thread.turn() as turn:
        pass
    with pytest.raises(NotFound):
        await turn.ack()


@pytest.mark.behaviour("N4")
async def test_only_endings_are_told(mt: Meantime, thread: Thread) -> None:
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


@pytest.mark.behaviour("N5", "R11")
@pytest.mark.embedded
async def test_an_ending_triggers_a_turn_of_an_idle_thread(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
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


@pytest.mark.behaviour("N5")
@pytest.mark.embedded
async def test_a_missed_wake_is_made_up_for(
    mt: Meantime, thread: Thread, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should a signal ever be lost, the reconciler looks again within five seconds (P7)."""
    waking = asyncio.ensure_future(anext(thread.wakeups()))
    await clock.settle()
    with monkeypatch.context() as deaf:
        deaf.setattr(runtime_of(mt).waking, "signal", lambda thread: None)
        await finished(thread)
    await clock.settle()
    assert not waking.done()
    await clock.advance_to_alarm(5)
    await asyncio.wait_for(waking, LIMIT)


@pytest.mark.behaviour("N5")
@pytest.mark.embedded
async def test_the_reconciler_forgets_nothing_that_ends_meanwhile(
    mt: Meantime, thread: Thread, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looked before the ending and comes back after it: the next turn is told all the same."""
    store, looked, go_on = runtime_of(mt).store, asyncio.Event(), asyncio.Event()
    look = store.unread

    async def slow() -> object:
        found = await look()
        looked.set()
        await go_on.wait()
        return found

    with monkeypatch.context() as delayed:
        delayed.setattr(store, "unread", slow)
        await clock.advance_to_alarm(5)
        await asyncio.wait_for(looked.wait(), LIMIT)
        handle = await finished(thread)
        go_on.set()
        await clock.settle()
        assert await take_turn(thread) == [handle.id]


@pytest.mark.behaviour("N6", "R11")
async def test_an_ending_waits_for_the_boundary_of_a_busy_thread(thread: Thread) -> None:
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


@pytest.mark.behaviour("N7")
@pytest.mark.embedded
async def test_the_reminder_counts_what_it_does_not_name(thread: Thread) -> None:
    """More than it reads are unread; a turn that holds some of them leaves out these, as it tells them."""
    handles = [await thread.start(Call(int, "1")) for _ in range(130)]
    await thread.wait(*handles)
    assert (await thread.reminder()).endswith("\n- and 110 more")
    async with thread.turn(limit=7) as turn:
        assert (await thread.reminder()).endswith("\n- and 110 more")
        assert (await turn.reminder()).endswith("\n- and 103 more")
        await turn.ack()
    assert (await thread.reminder()).endswith("\n- and 103 more")


@pytest.mark.behaviour("N7")
@pytest.mark.embedded
async def test_the_reminder_names_what_runs_and_what_is_not_told_yet(
    thread: Thread, clock: FakeClock
) -> None:
    """Running, and ended but not told; nothing to say is the empty text; reading it settles nothing."""
    assert await thread.reminder() == ""
    job, _ = await start(thread, description="index the repo", id="t_running1")
    await clock.advance(150)
    await finished(thread, description="read the docs", id="t_ended111")
    text = await thread.reminder()
    assert "- running1 2m: index the repo" in text
    assert "- ended111 completed, not yet told: read the docs" in text
    assert await thread.reminder() == text
    async with thread.turn() as turn:
        assert await thread.reminder() == text  # until the ack
        said = await turn.reminder()
        assert "running1" in said
        assert "not yet told" not in said, "its notice stands beside it"
        await turn.ack()
        assert await turn.reminder() == said
    job.finish()
    await thread.wait()
    await take_turn(thread)
    assert await thread.reminder() == ""


@pytest.mark.behaviour("N7")
async def test_the_reminder_of_a_turn_leaves_out_what_this_turn_tells(thread: Thread) -> None:
    """In our own words and in a dialect's; what another turn holds, or comes later, is not told here."""
    await finished(thread, description="read the docs")
    async with thread.turn() as turn:
        for words in (None, "background"):
            assert "read the docs" not in await turn.reminder(words)
            assert "read the docs" in await thread.reminder(words)
        await finished(thread, description="read the tests")
        assert "read the tests" in await turn.reminder()
        assert len(await turn.boundary()) == 1
        assert "read the tests" not in await turn.reminder()
        async with thread.turn() as other:
            assert "read the docs" in await other.reminder()
        assert "read the docs" not in await thread.turn(turn.id).reminder(), "known by its id"
        await turn.ack()


@pytest.mark.behaviour("N9")
async def test_only_what_was_included_counts_as_told(mt: Meantime, thread: Thread) -> None:
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


@pytest.mark.behaviour("N11")
@pytest.mark.embedded
async def test_every_ending_is_told(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
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


async def test_a_transcript_is_the_same_whoever_asks(mt: Meantime):
    """What one has added and nobody has saved is kept, even if nobody holds the object."""
    mt.thread("conv-1").transcript.add(None, "first")
    gc.collect()
    transcript = mt.thread("conv-1").transcript
    assert transcript is mt.thread("conv-1").transcript
    assert transcript is not mt.thread("conv-2").transcript
    beside = transcript.apart()
    beside.add(None, "aside")
    await mt.thread("conv-1").transcript.save()
    assert [message.text for message in await transcript.messages()] == ["first"]
    await beside.save()
    assert [message.text for message in await transcript.messages()] == ["first", "aside"]


async def test_transcripts_that_are_saved_are_not_kept(mt: Meantime):
    for number in range(100):
        transcript = mt.thread(f"conv-{number}").transcript
        transcript.add(None, "hello")
        await transcript.save()
    del transcript
    gc.collect()
    assert not mt._transcripts.unsaved
    assert len(mt._transcripts._known) == 0


@pytest.mark.embedded
async def test_what_came_back_beside_newer_ones_leaves_none_behind(
    mt: Meantime, thread: Thread, clock: FakeClock
) -> None:
    """A turn takes fewer than there are, and among them one that nobody had claimed for long."""
    await (await thread.start(Call(int, "1"), id="old")).wait()
    clock.jump(400 * 86_400.0)
    await runtime_of(mt).announcing.park_unclaimed()
    assert [notice.id for notice in await mt.notices("parked")] == ["old.1"]
    for id in ("new", "newest"):
        await (await thread.start(Call(int, "1"), id=id)).wait()
    for expected in (["old.1", "new.1"], ["newest.1"]):
        async with thread.turn(limit=2) as turn:
            assert [notice.id for notice in turn.notices] == expected
            await turn.ack()
