"""Lesson 3: a turn that does not acknowledge gives its notices back."""

from __future__ import annotations

from contextlib import suppress

import pytest

from meantime import Call, Thread

pytestmark = pytest.mark.anyio


async def test_leaving_without_ack_gives_the_notices_back(thread: Thread):
    """Suppose the model call fails in the middle of a turn: nothing is lost.

    The notices are unread again and come to the next turn with the same id, so you can look for that
    id in your own transcript before you add it.
    """
    handle = await thread.start(Call(len, "four"))
    await handle.wait()

    with suppress(ConnectionError):
        async with thread.turn() as turn:
            first = turn.notices[0]
            raise ConnectionError("the model is not there")

    async with thread.turn() as turn:
        again = turn.notices[0]
        await turn.ack()

    assert again.id == first.id == f"{handle.id}.1"
    assert (first.delivery, again.delivery) == (1, 2)
