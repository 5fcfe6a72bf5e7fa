"""An ack whose answer was lost is sent again, and is answered as it was: whatever became of its turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from meantime import Call, LeaseLost, Meantime, NotFound, Thread
from meantime.kernel.notices import Message, Part
from meantime.ports.store import Entry
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio


async def ended(thread: Thread, *ids: str) -> list[str]:
    for id in ids:
        await (await thread.start(Call(int, "1"), id=id)).wait()
    return [f"{id}.1" for id in ids]


async def test_N2_while_its_turn_is_open(mt: Meantime, thread: Thread) -> None:
    told = await ended(thread, "one", "two", "three")
    turn = await mt._runtime.open_turn("conv-1", lease=60, limit=100)
    first = await mt._runtime.ack(turn.id, told[:2], ())
    assert (first.told, first.gone) == (("one.1", "two.1"), ())
    assert await mt._runtime.ack(turn.id, told[:2], ()) == first
    assert (await mt._runtime.ack(turn.id, told, ())).told == tuple(told)


@pytest.mark.parametrize("failed", [False, True])
async def test_N2_after_its_turn_was_closed(mt: Meantime, thread: Thread, failed: bool) -> None:
    told = await ended(thread, "one", "two")
    turn = await mt._runtime.open_turn("conv-1", lease=60, limit=100)
    first = await mt._runtime.ack(turn.id, told[:1], ())
    await mt._runtime.close_turn(turn.id, failed=failed)
    assert await mt._runtime.ack(turn.id, told[:1], ()) == first
    with pytest.raises(LeaseLost) as problem:
        await mt._runtime.ack(turn.id, told, ())
    assert problem.value.notices == ("two.1",)
    async with thread.turn() as later:
        assert [notice.id for notice in later.notices] == ["two.1"]


async def test_N2_after_its_lease_lapsed(mt: Meantime, thread: Thread, clock: FakeClock) -> None:
    told = await ended(thread, "one")
    turn = await mt._runtime.open_turn("conv-1", lease=30, limit=100)
    first = await mt._runtime.ack(turn.id, told, ())
    await clock.advance(31)
    with pytest.raises(NotFound):
        await mt._runtime.renew(turn.id)
    assert await mt._runtime.ack(turn.id, told, ()) == first


async def test_N2_after_a_restart_of_the_owner(tmp_path: Path) -> None:
    async with Meantime.open(tmp_path / "work.db") as mt:
        told = await ended(mt.thread("conv-1"), "one", "two")
        turn = await mt._runtime.open_turn("conv-1", lease=60, limit=100)
        first = await mt._runtime.ack(turn.id, told[:1], ())
    async with Meantime.open(tmp_path / "work.db") as mt:
        assert await mt._runtime.ack(turn.id, told[:1], ()) == first
        with pytest.raises(LeaseLost):
            await mt._runtime.ack(turn.id, told, ())


async def test_N2_what_the_agent_read_itself_is_answered_again_too(mt: Meantime, thread: Thread) -> None:
    (shown,) = await ended(thread, "one")
    turn = await mt._runtime.open_turn("conv-1", lease=60, limit=100)
    (read,) = await ended(thread, "two")
    await mt._runtime.output("two", "conv-1", turn=turn.id)
    first = await mt._runtime.ack(turn.id, [shown], (), [read])
    assert first.told == (shown, read)
    assert await mt._runtime.ack(turn.id, [shown], (), [read]) == first
    assert (await mt._runtime.ack(turn.id, [], (), [read])).told == (read,)
    await mt._runtime.close_turn(turn.id, failed=False)
    assert await mt._runtime.ack(turn.id, [shown], (), [read]) == first


async def test_N2_another_turn_or_thread_cannot_say_that_it_told_it(mt: Meantime, thread: Thread) -> None:
    told = await ended(thread, "one")
    turn = await mt._runtime.open_turn("conv-1", lease=60, limit=100)
    await mt._runtime.ack(turn.id, told, ())
    with pytest.raises(NotFound):
        await mt._runtime.ack(turn.id, told, (), thread="other")
    await mt._runtime.close_turn(turn.id, failed=False)
    for guess, scope in (("turn_nobody", None), (turn.id, "other")):
        with pytest.raises(LeaseLost):
            await mt._runtime.ack(guess, told, (), thread=scope)


async def test_N2_a_transcript_of_ours_is_written_by_an_open_turn_only(mt: Meantime, thread: Thread) -> None:
    """A success would say that the entries are there, and nobody can know that any more."""
    told = await ended(thread, "one")
    turn = await mt._runtime.open_turn("conv-1", lease=60, limit=100)
    await mt._runtime.ack(turn.id, told, ())
    await mt._runtime.close_turn(turn.id, failed=False)
    with pytest.raises(LeaseLost):
        await mt._runtime.ack(turn.id, told, [Entry(Message("user", (Part("more"),)))])
    assert not await mt._runtime.transcript("conv-1")


async def test_P12_turns_of_another_thread_are_not_found(mt: Meantime, thread: Thread) -> None:
    told = await ended(thread, "one")
    turn = await mt._runtime.open_turn("conv-1", lease=60, limit=100)
    with pytest.raises(NotFound):
        await mt._runtime.boundary(turn.id, limit=1, thread="other")
    with pytest.raises(NotFound):
        await mt._runtime.renew(turn.id, thread="other")
    with pytest.raises(NotFound):
        await mt._runtime.close_turn(turn.id, failed=False, thread="other")
    assert (await mt._runtime.ack(turn.id, told, (), thread="conv-1")).told == tuple(told)
