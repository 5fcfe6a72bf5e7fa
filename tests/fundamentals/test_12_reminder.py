"""Lesson 12: the reminder says, on every turn, what goes on."""

from __future__ import annotations

import asyncio

import pytest

from meantime import Call, Thread

pytestmark = pytest.mark.anyio


async def test_a_reminder_says_what_runs_and_what_is_untold(thread: Thread):
    """A short text for the model: what runs, and what ended but was not yet told.

    It is only a view: reading it settles nothing. When there is nothing to say, it is empty.
    """
    assert await thread.reminder() == ""

    running = await thread.start(Call(asyncio.Event().wait), description="watch the build")
    ended = await thread.start(Call(abs, -1), description="count")
    await ended.wait()

    text = await thread.reminder()
    assert "0s: watch the build" in text
    assert "completed, not yet told: count" in text

    async with thread.turn() as turn:
        await turn.ack()
    await running.cancel(wait=True)
    async with thread.turn() as turn:
        await turn.ack()
    assert await thread.reminder() == ""
