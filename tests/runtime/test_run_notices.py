"""Work tells its conversation something before it ends: once, in order, and never more often than it may."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.waiting import LIMIT

from jobs import Job, take_turn
from meantime import Call, InvalidInput, Meantime, Refused, Settings, Thread, current
from meantime.kernel.event_notices import NoticeRate
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio


async def told(thread: Thread) -> list[tuple[str, str]]:
    """What a turn is told: kind and text of each notice, in order."""
    async with thread.turn() as turn:
        found = [(notice.kind.value, notice.text) for notice in turn.notices]
        await turn.ack()
    return found


async def test_a_function_tells_before_it_ends(thread: Thread) -> None:
    job = Job()

    async def work() -> str:
        assert await current().notify("half of it") == "sent"
        return await job.work()

    handle = await thread.start(Call(work), description="index")
    await job.started.wait()
    assert await told(thread) == [("event", "half of it")]
    assert await told(thread) == []
    job.finish("all of it")
    await handle.wait()
    assert await told(thread) == [("ending", "all of it")]


async def test_an_idle_conversation_is_woken_by_it(thread: Thread) -> None:
    job = Job()

    async def work() -> None:
        await current().notify("look at this")
        await job.work()

    await thread.start(Call(work))
    wakes = aiter(thread.wakeups())
    async with asyncio.timeout(LIMIT):
        await anext(wakes)
    assert await told(thread) == [("event", "look at this")]
    job.finish()


async def test_a_function_on_a_thread_can_tell_as_well(thread: Thread) -> None:
    def work() -> str:
        return asyncio.run(current().notify("from a thread"))

    handle = await thread.start(Call(work))
    await handle.wait()
    assert await told(thread) == [("event", "from a thread"), ("ending", "sent")]


async def test_a_flood_is_told_together_and_no_event_is_left_out(thread: Thread) -> None:
    async def work() -> None:
        for number in range(100):
            await current().notify(f"event {number}")

    handle = await thread.start(Call(work))
    await handle.wait()
    async with thread.turn() as turn:
        events = [notice.body for notice in turn.notices if notice.body is not None]
        assert sum(event.count for event in events) == 100
        assert (events[0].first, events[-1].text) == ("event 0", "event 99")
        assert len(events) <= 3
        await turn.ack()


@pytest.mark.embedded
async def test_events_that_join_a_notice_nobody_was_given_are_sent_with_it(clock: FakeClock) -> None:
    job = Job()
    async with Meantime.open(":memory:", clock=clock) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Call(job.work))
        for text in ("first", "second", "third"):
            assert await thread.notify(handle, text) == "sent"
        async with thread.turn() as turn:
            (notice,) = turn.notices
            assert notice.body is not None
            assert (notice.body.count, notice.body.first, notice.text) == (3, "first", "third")
            assert await thread.notify(handle, "fourth") == "waiting"
            await turn.ack()
        job.finish()


@pytest.mark.embedded
async def test_what_waits_is_told_when_its_time_has_come(clock: FakeClock) -> None:
    job = Job()

    async def work() -> None:
        await job.work()

    async with Meantime.open(":memory:", clock=clock) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Call(work))
        assert await thread.notify(handle, "first") == "sent"
        assert await told(thread) == [("event", "first")]
        for text in ("second", "third"):
            assert await thread.notify(handle, text) == "waiting"
        assert await told(thread) == []
        await clock.advance(1.0)
        async with asyncio.timeout(LIMIT):
            await anext(aiter(thread.wakeups()))
        async with thread.turn() as turn:
            (notice,) = turn.notices
            assert notice.body is not None
            assert (notice.body.count, notice.body.first, notice.text) == (2, "second", "third")
            await turn.ack()
        job.finish()


@pytest.mark.embedded
async def test_an_ending_tells_what_waits_and_leaves_no_alarm(clock: FakeClock) -> None:
    job = Job()
    rarely = Settings(notices=NoticeRate(seconds=86_400.0))
    async with Meantime.open(":memory:", clock=clock, settings=rarely) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Call(job.work))
        await thread.notify(handle, "first")
        assert await told(thread) == [("event", "first")]
        assert await thread.notify(handle, "second") == "waiting"
        assert 86_400.0 in clock.due_in
        job.finish("all of it")
        await handle.wait()
        assert await told(thread) == [("event", "second"), ("ending", "all of it")]
        assert 86_400.0 not in clock.due_in


@pytest.mark.in_process("a function at a worker goes on without its owner")
@pytest.mark.embedded
async def test_what_waits_survives_a_restart(tmp_path: Path) -> None:
    """It is in the task, so its ending tells it, whoever records that."""
    rarely = Settings(notices=NoticeRate(seconds=3_600.0))
    async with Meantime.open(tmp_path / "work.db", settings=rarely) as mt:
        thread = mt.thread("conv-1")
        handle = await thread.start(Call(asyncio.sleep, 600))
        await thread.notify(handle, "first")
        assert await told(thread) == [("event", "first")]
        assert await thread.notify(handle, "second") == "waiting"
    async with Meantime.open(tmp_path / "work.db") as mt:
        found = await told(mt.thread("conv-1"))
        assert [kind for kind, _ in found] == ["event", "ending"]
        assert found[0][1] == "second"


async def test_progress_is_not_told(thread: Thread) -> None:
    async def work() -> None:
        current().progress(50, "half of it")

    handle = await thread.start(Call(work))
    await handle.wait()
    assert await take_turn(thread) == [handle.id]


async def test_a_reminder_and_an_inbox_know_of_it(mt: Meantime, thread: Thread) -> None:
    job = Job()
    handle = await thread.start(Call(job.work), description="index")
    await thread.notify(handle, "half of it")
    assert "- reports of running tasks, not yet told: 1" in await thread.reminder()
    (notice,) = await mt.notices()
    assert (notice.kind, notice.task.status, notice.task_id) == ("event", "running", handle.id)
    job.finish()


async def test_what_has_ended_tells_nothing_more(thread: Thread) -> None:
    handle = await thread.start(Call(int, "1"))
    await handle.wait()
    with pytest.raises(Refused, match="has ended"):
        await thread.notify(handle, "late")


async def test_a_call_that_somebody_waits_for_only_answers(thread: Thread) -> None:
    async def work() -> str:
        with pytest.raises(Refused):
            await current().notify("half of it")
        return "done"

    answer = await thread.call(Call(work), threshold=-1)
    assert answer.result == "done"


@pytest.mark.parametrize("text", ["", "  ", "x" * 100_001, 7, None])
async def test_bad_texts_are_refused(thread: Thread, text: object) -> None:
    job = Job()
    handle = await thread.start(Call(job.work))
    with pytest.raises(InvalidInput):
        await thread.notify(handle, text)  # type: ignore[arg-type]
    job.finish()


async def test_a_task_cannot_be_called_like_a_notice(thread: Thread) -> None:
    with pytest.raises(InvalidInput, match="looks like the id of a notice"):
        await thread.start(Call(int, "1"), id="t_2qx7m4kd9a.1")
