"""Lesson 7: cancel is a request, on record before the call returns."""

from __future__ import annotations

import asyncio

import pytest

from meantime import Call, TaskCancelled, Thread
from outcomes import cancelled

pytestmark = pytest.mark.anyio


async def test_cancel_stops_the_work_and_is_told(thread: Thread):
    """The work gets a CancelledError at its next await. `wait=True` answers with its ending.

    Asking twice is harmless, and a cancelled task is told like any other.
    """
    handle = await thread.start(Call(asyncio.Event().wait))

    answer = await handle.cancel(reason="the user changed their mind", wait=True)
    assert answer.task.status == "cancelled"
    assert cancelled(answer.task).reason == "the user changed their mind"
    assert (await handle.cancel()).disposition == "already_ended"

    with pytest.raises(TaskCancelled):
        await handle.result()
    async with thread.turn() as turn:
        assert [notice.task_id for notice in turn.notices] == [handle.id]
        await turn.ack()
