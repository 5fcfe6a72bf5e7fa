"""Lesson 25: a loop of your own is a few lines."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import LIMIT

from meantime import Call, InvalidInput, Thread
from meantime.blocking import Meantime as BlockingMeantime
from outcomes import completed

pytestmark = pytest.mark.anyio


async def test_words_and_endings_are_turns(thread: Thread):
    """`loop.turns()` gives a turn whenever there is something new: what was said comes at once, and an
    ending wakes the agent when it is idle. `turn.messages()` is both, as the conversation needs it."""
    loop = thread.loop()
    conversation: list[str] = []
    loop.say("add them, please")

    async for turn in loop.turns():
        async with turn:
            conversation += [message.text for message in turn.messages()]
            if turn.said:
                await thread.start(Call(sum, [1, 2]), description="add")
            await turn.ack()
        loop.close()  # nobody says more; what runs is still told

    said, told = conversation
    assert said == "add them, please"
    assert '"add" completed' in told


async def test_words_are_text(thread: Thread):
    """What is none is refused where it is said, not in the turn that would tell it."""
    wrong: Any
    for wrong in (5, None, b"hello"):
        with pytest.raises(InvalidInput, match="say takes a text, not"):
            thread.loop().say(wrong)


async def test_what_ends_together_is_one_turn(thread: Thread):
    """A model is asked once for three endings, not three times."""
    loop = thread.loop()
    for number in (-1, -2, -3):
        await (await thread.start(Call(abs, number))).wait()
    loop.say("and?")

    turns: list[tuple[int, tuple[str, ...]]] = []
    async for turn in loop.turns():
        async with turn:
            await turn.ack()
        turns.append((len(turn.notices), turn.said))
        loop.close()

    assert turns == [(3, ("and?",))]


async def test_what_a_tool_has_shown_is_not_told_again(thread: Thread):
    """`boundary(read=…)` takes the endings that the agent has read: they are acknowledged with the turn."""
    async with thread.turn() as turn:
        seen = await thread.start(Call(abs, -1))
        other = await thread.start(Call(abs, -2))
        await thread.wait(seen, other)

        fresh = await turn.boundary(read=[f"{seen.id}.1"])
        assert [notice.task_id for notice in fresh] == [other.id]
        await turn.ack()

    async with thread.turn() as turn:
        assert turn.notices == []


async def test_a_turn_that_fails_is_taken_again(thread: Thread):
    """Leaving it without an ack gives the endings back. New endings, or a few seconds, wake the agent."""
    loop = thread.loop()
    first = await thread.start(Call(abs, -1))
    await first.wait()
    deliveries: list[list[int]] = []

    async for turn in loop.turns():
        try:
            async with turn:
                deliveries.append([notice.delivery for notice in turn.notices])
                if len(deliveries) == 1:
                    raise ConnectionError("the model is not there")
                await turn.ack()
                loop.close()
        except ConnectionError:
            await thread.start(Call(abs, -2))

    assert deliveries[0] == [1]
    assert deliveries[-1][0] == 2


async def test_closing_ends_it_when_nothing_is_left(thread: Thread):
    """Also while it waits, and also where the last thing that runs tells nobody."""
    await thread.start(Call(abs, -1), notify=False)
    loop = thread.loop()

    async def turns() -> int:
        return len([turn async for turn in loop.turns()])

    waiting = asyncio.create_task(turns())
    await asyncio.sleep(0)
    loop.close()
    assert await asyncio.wait_for(waiting, LIMIT) == 0


def test_the_loop_works_without_async(tmp_path: Path):
    """The same for code that is not async."""
    with BlockingMeantime.open(tmp_path / "work.db") as mt:
        thread = mt.thread("conv-1")
        loop = thread.loop()
        thread.start(Call(abs, -3))
        told: list[int] = []
        for turn in loop.turns():
            with turn:
                told += [completed(notice).result for notice in turn.notices]
                turn.ack()
            loop.close()
        assert told == [3]
