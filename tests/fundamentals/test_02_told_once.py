"""Lesson 2: each ending is told once, in the order of completion."""

from __future__ import annotations

import asyncio

import pytest

from meantime import Call, Thread
from outcomes import completed

pytestmark = pytest.mark.anyio


@pytest.mark.behaviour("P5", "P6")
async def test_be_told_once_in_order(thread: Thread):
    """An ending makes a notice. A turn is handed the unread ones, oldest ending first.

    `ack()` says: the conversation holds them now. After that they never come again.
    """
    gates = {name: asyncio.Event() for name in ("slow", "quick")}

    async def work(name: str) -> str:
        await gates[name].wait()
        return name

    slow = await thread.start(Call(work, "slow"))
    quick = await thread.start(Call(work, "quick"))
    for name, handle in (("quick", quick), ("slow", slow)):
        gates[name].set()
        await handle.wait()

    async with thread.turn() as turn:
        assert [completed(notice).result for notice in turn.notices] == ["quick", "slow"]
        assert [notice.number for notice in turn.notices] == [1, 2]
        await turn.ack()

    async with thread.turn() as turn:
        assert turn.notices == []


async def test_a_notice_becomes_a_message(thread: Thread):
    """`notice.message()` is what you put into the conversation. What the work returned stands in a
    fenced block: it is data from a program, not the word of a person."""
    handle = await thread.start(Call(str.upper, "done"), description="shout")
    await handle.wait()

    async with thread.turn() as turn:
        message = turn.notices[0].message()
        await turn.ack()

    assert message.role == "user"
    assert '"shout" completed' in message.text
    assert "DONE" in message.text
