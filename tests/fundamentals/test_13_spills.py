"""Lesson 13: a result that is too big for a message goes to a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from meantime import Call, InlineLimits, Thread

pytestmark = pytest.mark.anyio


async def test_results_over_the_limit_spill(thread: Thread):
    """The message shows the beginning and the end and names the file; `result()` still gives it whole.

    The limit is 51,200 bytes or 1,000 lines, or what you say for one task.
    """
    handle = await thread.start(Call("line\n".__mul__, 5_000), inline=InlineLimits(max_lines=10))
    whole = await handle.result()
    assert whole == "line\n" * 5_000

    spill = (await handle.get()).outcome.spill
    assert spill.lines == 5_000
    assert _read(spill.path) == whole

    async with thread.turn() as turn:
        text = turn.notices[0].message().text
        await turn.ack()
    assert spill.path in text
    assert len(text) < 4_000


def _read(path: str) -> str:
    return Path(path).read_text()
