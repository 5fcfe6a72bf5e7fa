"""Lesson 20: the same without async."""

from __future__ import annotations

from pathlib import Path

import pytest

from meantime import Call
from meantime.blocking import Meantime


@pytest.mark.in_process("a placed start is two events: submitted, and started by the claim")
def test_the_blocking_facade(tmp_path: Path):
    """`meantime.blocking` has the same objects and the same names; every call waits for its answer.

    The work still runs beside you: only your own questions block.
    """
    with Meantime.open(tmp_path / "work.db") as mt:
        thread = mt.thread("conv-1")
        handle = thread.start(Call(abs, -5))
        assert handle.result() == 5

        for _ in thread.wakeups():
            with thread.turn() as turn:
                assert [notice.task_id for notice in turn.notices] == [handle.id]
                turn.ack()
            break

        events = mt.events()
        assert [next(events).kind for _ in range(2)] == ["submitted", "ended"]
