"""Lesson 10: a batch is work handed off together."""

from __future__ import annotations

import pytest

from meantime import Call, Thread

pytestmark = pytest.mark.anyio


async def test_a_batch_is_counted_and_waited_for(thread: Thread):
    """Wait for all of it, or for any; each notice says how far the batch is."""
    batch = thread.batch("review")
    for number in (-1, -2, -3):
        await batch.start(Call(abs, number))

    await batch.wait()
    count = await batch.count()
    assert (count.ended, count.total, count.failed) == (3, 3, 0)

    async with thread.turn() as turn:
        assert [notice.batch.ended for notice in turn.notices] == [1, 2, 3]
        assert "3 of 3 tasks of its batch have ended." in turn.notices[-1].message().text
        await turn.ack()
