"""A start costs the same however many conversations are active: lines of code are counted, not time."""

from __future__ import annotations

import asyncio
import sys
from types import FrameType
from typing import Any

import pytest

from meantime import Call, Meantime
from meantime.runtime import batches
from runtimes import runtime_of

pytestmark = pytest.mark.anyio


class Lines:
    """Counts the lines of runtime/batches.py that are executed."""

    def __init__(self) -> None:
        self.count = 0

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename != batches.__file__:
            return None
        self.count += event == "line"
        return self._line

    def __enter__(self) -> Lines:
        self._before = sys.gettrace()  # a measurement of coverage, which goes on afterwards
        sys.settrace(self._line)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)


async def test_starting_does_not_look_at_the_batches_of_other_conversations(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(batches, "KEPT", 10)
    counts: list[int] = []
    async with Meantime.open(":memory:") as mt:
        forever = asyncio.Event().wait
        for number in range(40):
            with Lines() as lines:
                await mt.thread(f"conversation-{number}").start(Call(forever))
            counts.append(lines.count)
    assert counts[-1] == counts[20]


async def test_batches_that_are_over_are_forgotten_and_counted_in_the_store(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(batches, "KEPT", 5)
    async with Meantime.open(":memory:") as mt:
        known = runtime_of(mt).batches
        for number in range(20):
            thread = mt.thread(f"conversation-{number}")
            await (await thread.start(Call(abs, -1), batch=f"batch-{number}")).wait()
        assert len(known._counts) <= 6
        assert not known._open
        assert (await mt.thread("conversation-0").batch("batch-0").count()).ended == 1
