"""Lesson 9: work that raises has failed, and that is told too."""

from __future__ import annotations

import pytest

from meantime import Call, Failed, TaskFailed, Thread

pytestmark = pytest.mark.anyio


async def test_a_failure_is_told_with_its_text(thread: Thread):
    """The notice carries the exception's text; the traceback is in `detail`, for people.

    Code that asks for the result gets TaskFailed, with the task on it.
    """

    def divide(a: int, b: int) -> float:
        return a / b

    handle = await thread.start(Call(divide, 1, 0))
    with pytest.raises(TaskFailed) as raised:
        await handle.result()
    assert "ZeroDivisionError: division by zero. See .task" in str(raised.value)

    outcome = raised.value.task.outcome
    assert isinstance(outcome, Failed)
    assert outcome.message == "ZeroDivisionError: division by zero"
    assert "return a / b" in outcome.detail

    async with thread.turn() as turn:
        assert "failed" in turn.notices[0].message().text
        await turn.ack()
