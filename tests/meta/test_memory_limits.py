"""The memory of what runs stays near its limits. Allocations are counted: a busy machine changes nothing."""

from __future__ import annotations

import pytest
from benchmarks import memory

pytestmark = [pytest.mark.anyio, pytest.mark.docs]
FUNCTION, CONVERSATION = 3.0, 7.5  # KB; 2.4 and 6.6 on Python 3.11, and frames differ between versions


async def test_a_running_function_and_a_conversation_keep_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "TASKS", 500)
    monkeypatch.setattr(memory, "CONVERSATIONS", 300)
    bare, function, conversation = await memory._running()
    assert (function - bare) / 1024 < FUNCTION
    assert conversation / 1024 < CONVERSATION
