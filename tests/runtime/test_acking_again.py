"""An ack whose answer was lost is sent again, and is answered as it was: whatever became of its turn."""

from __future__ import annotations

from pathlib import Path

import pytest

from meantime import Call, InvalidInput, LeaseLost, Meantime, NotFound, Thread
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio


async def ended(thread: Thread, *ids: str) -> list[str]:
    for id in ids:
        await (await thread.start(Call(int, "1"), id=id)).wait()
    return [f"{id}.1" for id in ids]


@pytest.mark.behaviour("N2")
async def test_an_ack_is_repeated_while_its_turn_is_open(thread: Thread) -> None:
    told = await ended(thread, "one", "two", "three")
    turn = await thread.turn(lease=60).open()
    first = await turn.ack(*told[:2])
    assert (first.told, first.gone) == (("one.1", "two.1"), ())
    assert await turn.ack(*told[:2]) == first
    assert (await turn.ack(*told)).told == tuple(told)


@pytest.mark.behaviour("N2")
@pytest.mark.parametrize("failed", [False, True])
async def test_an_ack_is_repeated_after_its_turn_was_closed(thread: Thread, failed: bool) -> None:
    told = await ended(thread, "one", "two")
    turn = await thread.turn(lease=60).open()
    first = await turn.ack(*told[:1])
    await turn.close(failed=failed)
    assert await turn.ack(*told[:1]) == first
    with pytest.raises(LeaseLost) as problem:
        await turn.ack(*told)
    assert problem.value.notices == ("two.1",)
    async with thread.turn() as later:
        assert [notice.id for notice in later.notices] == ["two.1"]


@pytest.mark.behaviour("N2")
@pytest.mark.embedded
async def test_an_ack_is_repeated_after_its_lease_lapsed(thread: Thread, clock: FakeClock) -> None:
    told = await ended(thread, "one")
    turn = await thread.turn(lease=30).open()
    first = await turn.ack(*told)
    await clock.advance(31)
    with pytest.raises(NotFound):
        await turn.renew()
    assert await turn.ack(*told) == first


@pytest.mark.behaviour("N2")
async def test_an_ack_is_repeated_after_a_restart_of_the_owner(tmp_path: Path) -> None:
    async with Meantime.open(tmp_path / "work.db") as mt:
        told = await ended(mt.thread("conv-1"), "one", "two")
        turn = await mt.thread("conv-1").turn(lease=60).open()
        first = await turn.ack(*told[:1])
    async with Meantime.open(tmp_path / "work.db") as mt:
        again = mt.thread("conv-1").turn(turn.id)
        assert await again.ack(*told[:1]) == first
        with pytest.raises(LeaseLost):
            await again.ack(*told)


@pytest.mark.behaviour("N2")
async def test_what_the_agent_read_itself_is_answered_again_too(thread: Thread) -> None:
    (shown,) = await ended(thread, "one")
    turn = await thread.turn(lease=60).open()
    (read,) = await ended(thread, "two")
    await turn.output("two")
    first = await turn.ack()
    assert first.told == (shown, read)
    assert await turn.ack() == first
    await turn.close()
    assert await turn.ack() == first


@pytest.mark.behaviour("N2")
async def test_another_turn_or_thread_cannot_say_that_it_told_it(mt: Meantime, thread: Thread) -> None:
    told = await ended(thread, "one")
    turn = await thread.turn(lease=60).open()
    await turn.ack(*told)
    elsewhere = mt.thread("other").turn(turn.id)
    with pytest.raises(NotFound):
        await elsewhere.ack(*told)
    await turn.close()
    for guess in (thread.turn("turn_nobody"), elsewhere):
        with pytest.raises(LeaseLost):
            await guess.ack(*told)


@pytest.mark.behaviour("N2")
async def test_a_transcript_of_ours_is_written_by_an_open_turn_only(thread: Thread) -> None:
    """A success would say that the entries are there, and nobody can know that any more."""
    told = await ended(thread, "one")
    turn = await thread.turn(lease=60).open()
    await turn.ack(*told)
    await turn.close()
    thread.transcript.add(None, "more")
    with pytest.raises(LeaseLost):
        await turn.ack(*told, transcript=thread.transcript)
    assert not await thread.transcript.messages()


@pytest.mark.behaviour("P12")
async def test_turns_of_another_thread_are_not_found(mt: Meantime, thread: Thread) -> None:
    told = await ended(thread, "one")
    turn = await thread.turn(lease=60).open()
    elsewhere = mt.thread("other").turn(turn.id)
    for tried in (elsewhere.boundary, elsewhere.renew, elsewhere.close):
        with pytest.raises(NotFound):
            await tried()
    assert (await turn.ack(*told)).told == tuple(told)


async def test_a_turn_is_gone_on_with_by_whoever_knows_its_id(mt: Meantime, thread: Thread) -> None:
    told = await ended(thread, "one", "two")
    opened = await thread.turn(lease=60).open()
    assert [notice.id for notice in opened.notices] == told
    elsewhere = mt.thread("conv-1").turn(opened.id)
    await elsewhere.ack("one.1")
    await elsewhere.close()
    async with thread.turn() as later:
        assert [notice.id for notice in later.notices] == ["two.1"]


async def test_a_turn_that_is_gone_on_with_tells_only_what_is_named(thread: Thread) -> None:
    await ended(thread, "one")
    opened = await thread.turn(lease=60).open()
    with pytest.raises(InvalidInput, match="Name the notices"):
        await thread.turn(opened.id).ack()


async def test_a_turn_can_be_taken_twice(thread: Thread) -> None:
    turn = thread.turn()
    for _ in range(2):
        (told,) = await ended(thread, "one") if not turn.id else await ended(thread, "two")
        async with turn:
            assert [notice.id for notice in turn.notices] == [told]
            await turn.ack()
