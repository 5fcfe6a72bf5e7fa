"""Lesson 15: a thread is a conversation, and sees only its own."""

from __future__ import annotations

import pytest

from meantime import Call, Meantime, NotFound

pytestmark = pytest.mark.anyio


async def test_two_threads_do_not_see_each_other(mt: Meantime):
    """Another thread's task is not found, not listed, not told. A person, who holds the Meantime
    itself, sees them all."""
    mine, other = mt.thread("mine"), mt.thread("other")
    handle = await mine.start(Call(abs, -1))
    await handle.wait()

    with pytest.raises(NotFound):
        await other.get(handle.id)
    assert await other.list("all") == []
    async with other.turn() as turn:
        assert turn.notices == []

    assert (await mt.get(handle.id)).thread == "mine"
