"""A caller may be cancelled at any moment of a turn: nothing is stranded, nothing is told falsely."""

from __future__ import annotations

import asyncio

import pytest
from tests.waiting import LIMIT

from meantime import Call, LedgerError, Meantime, Thread
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


async def quick() -> int:
    return 1


async def ended(thread: Thread) -> str:
    handle = await thread.start(Call(quick))
    await handle.wait()
    return handle.id


class Slow:
    """Holds one method of the store back until it is let go; the write itself is done for real."""

    def __init__(self, mt: Meantime, name: str) -> None:
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        self._store, self._name = runtime_of(mt).store, name
        self._real = getattr(self._store, name)

    def __enter__(self) -> Slow:
        async def slow(*args, **options):
            result = await self._real(*args, **options)
            self.reached.set()
            await self.go.wait()
            return result

        setattr(self._store, self._name, slow)
        return self

    def __exit__(self, *_: object) -> None:
        setattr(self._store, self._name, self._real)
        self.go.set()


async def told(thread: Thread) -> list[str]:
    async with thread.turn() as turn:
        await turn.ack()
        return [notice.task_id for notice in turn.notices]


async def cancel(task: asyncio.Future) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.embedded
async def test_opening_a_turn(mt: Meantime, thread: Thread) -> None:
    id = await ended(thread)
    with Slow(mt, "lease") as slow:
        opening = asyncio.ensure_future(thread.turn().__aenter__())
        await slow.reached.wait()
        await cancel(opening)
    await asyncio.wait_for(anext(thread.wakeups()), LIMIT)
    assert await told(thread) == [id]


@pytest.mark.behaviour("N9")
@pytest.mark.embedded
async def test_a_boundary_whose_answer_nobody_saw_is_not_acknowledged(mt: Meantime, thread: Thread) -> None:
    async with thread.turn() as turn:
        id = await ended(thread)
        with Slow(mt, "lease") as slow:
            waiting = asyncio.ensure_future(turn.boundary())
            await slow.reached.wait()
            await cancel(waiting)
        await turn.ack()
    assert await told(thread) == [id]


@pytest.mark.embedded
async def test_a_turn_left_while_its_lease_is_being_written(mt: Meantime, thread: Thread) -> None:
    turn = thread.turn()
    await turn.__aenter__()
    id = await ended(thread)
    with Slow(mt, "lease") as slow:
        waiting = asyncio.ensure_future(turn.boundary())
        await slow.reached.wait()
        await cancel(waiting)
        leaving = asyncio.ensure_future(turn.__aexit__(None, None, None))
        await asyncio.sleep(0)
        slow.go.set()
        await leaving
    await asyncio.wait_for(anext(thread.wakeups()), LIMIT)
    assert await told(thread) == [id]


@pytest.mark.embedded
async def test_a_turn_that_is_cancelled_while_it_looks_is_not_left_open(mt: Meantime, thread: Thread) -> None:
    with Slow(mt, "notices") as slow:
        opening = asyncio.ensure_future(thread.turn().__aenter__())
        await slow.reached.wait()
        await cancel(opening)
    id = await ended(thread)
    await asyncio.wait_for(anext(thread.wakeups()), LIMIT)  # which a busy thread is not given
    assert await told(thread) == [id]


@pytest.mark.embedded
async def test_a_thread_is_busy_while_its_turn_looks(mt: Meantime, thread: Thread) -> None:
    with Slow(mt, "notices") as slow:
        opening = asyncio.ensure_future(thread.turn().__aenter__())
        await slow.reached.wait()
        woken = asyncio.ensure_future(anext(thread.wakeups()))
        id = await ended(thread)  # the look has found nothing, and does not see it
        assert not woken.done()
    turn = await opening
    assert [notice.task_id for notice in (*turn.notices, *await turn.boundary())] == [id]
    await turn.ack()
    await turn.__aexit__(None, None, None)
    assert await told(thread) == []
    await cancel(woken)


@pytest.mark.embedded
async def test_a_turn_left_while_it_looks_takes_nothing(mt: Meantime, thread: Thread) -> None:
    await ended(thread)
    for _ in range(5):
        with pytest.raises(RuntimeError):
            async with thread.turn():
                raise RuntimeError
    assert "parked" in await thread.reminder()  # so that the look finds something
    turn = thread.turn()
    await turn.__aenter__()
    with Slow(mt, "notices") as slow:
        looking = asyncio.ensure_future(turn.boundary())
        await slow.reached.wait()
        id = await ended(thread)
        await turn.__aexit__(None, None, None)
    assert list(await looking) == []
    assert await told(thread) == [id]


@pytest.mark.embedded
async def test_leaving_a_turn(mt: Meantime, thread: Thread) -> None:
    id = await ended(thread)
    turn = await thread.turn().__aenter__()
    with Slow(mt, "release") as slow:
        leaving = asyncio.ensure_future(turn.__aexit__(None, None, None))
        await slow.reached.wait()
        await cancel(leaving)
    await asyncio.wait_for(anext(thread.wakeups()), LIMIT)
    assert await told(thread) == [id]


@pytest.mark.behaviour("N19")
@pytest.mark.embedded
async def test_a_read_that_nobody_saw_settles_nothing(mt: Meantime, thread: Thread) -> None:
    id = await ended(thread)
    async with thread.turn(limit=1) as first:
        await first.ack()
    async with thread.turn() as turn:
        id = await ended(thread)
        with Slow(mt, "read") as slow:
            reading = asyncio.ensure_future(turn.output(id))
            await slow.reached.wait()
            await cancel(reading)
        await turn.ack()
    assert await told(thread) == [id]


@pytest.mark.embedded
async def test_what_is_being_saved_for_a_caller_that_is_gone_is_not_saved_again(
    mt: Meantime, thread: Thread
) -> None:
    transcript = thread.transcript
    transcript.add(None, "first")
    with Slow(mt, "append") as slow:
        saving = asyncio.ensure_future(transcript.save())
        await slow.reached.wait()
        await cancel(saving)
        transcript.add(None, "second")
        again = asyncio.ensure_future(transcript.save())
        await asyncio.sleep(0)
        slow.go.set()
        await again
    assert [message.text for message in await transcript.messages()] == ["first", "second"]


@pytest.mark.embedded
async def test_an_ack_that_failed_can_be_said_again_with_its_transcript(
    mt: Meantime, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await ended(thread)
    transcript = thread.transcript

    async def fails(*args, **options):
        raise LedgerError("no")

    async with thread.turn() as turn:
        (notice,) = turn.notices
        transcript.add(None, "what the agent said", role="assistant")
        transcript.add(notice.id, notice.message())
        with monkeypatch.context() as broken:
            broken.setattr(runtime_of(mt).store, "settle", fails)
            with pytest.raises(LedgerError):
                await turn.ack(transcript=transcript)
        await turn.ack(transcript=transcript)
    entries = await transcript.entries()
    assert [entry.notice for entry in entries] == [None, f"{id}.1"]
    assert await told(thread) == []


@pytest.mark.embedded
async def test_a_disk_that_fails_while_a_turn_is_left_keeps_nothing_back(
    mt: Meantime, thread: Thread, clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notices are given back by the reconciler, once the disk can be written again."""
    id = await ended(thread)

    async def fails(*args, **options):
        raise LedgerError("no")

    with monkeypatch.context() as broken:
        broken.setattr(runtime_of(mt).store, "release", fails)
        async with thread.turn() as turn:
            assert len(turn.notices) == 1
    assert await told(thread) == []
    waking = asyncio.ensure_future(anext(thread.wakeups()))
    await clock.advance_to_alarm(5)  # the reconciler's
    await asyncio.wait_for(waking, LIMIT)
    assert await told(thread) == [id]


async def test_everybody_who_waits_is_let_go_by_close() -> None:
    mt = await Meantime.open(":memory:")
    await mt.set_limits(per_thread=1)
    thread = mt.thread("conv-1")
    await thread.start(Call(asyncio.Event().wait))
    queued = await thread.start(Call(quick))
    events = mt.events(after=10**9)
    waits = [
        asyncio.ensure_future(queued.wait()),
        asyncio.ensure_future(anext(events)),
        asyncio.ensure_future(anext(mt.thread("other").wakeups())),
    ]
    await asyncio.sleep(0)
    await mt.close()
    done, pending = await asyncio.wait(waits, timeout=LIMIT)
    assert not pending
    assert all(one.exception() is not None for one in done)
