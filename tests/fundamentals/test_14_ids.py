"""Lesson 14: ids are made to be typed."""

from __future__ import annotations

import pytest

from meantime import Ambiguous, Call, Duplicate, NotFound, Thread

pytestmark = pytest.mark.anyio


async def test_a_unique_prefix_is_enough(thread: Thread):
    """Ids are random, so a few characters do, with or without the `t_`. You may also name your own."""
    await thread.start(Call(abs, 1), id="t_apple1")
    await thread.start(Call(abs, 2), id="t_apple2")
    plum = await thread.start(Call(abs, 3), id="t_plum")

    assert (await thread.get("pl")).id == plum.id

    with pytest.raises(Ambiguous) as raised:
        await thread.get("t_app")
    assert raised.value.candidates == ("t_apple1", "t_apple2")

    with pytest.raises(NotFound):
        await thread.get("cherry")


async def test_one_task_for_one_tool_call(thread: Thread):
    """Hand over the model's tool call id: a second start for it is refused and names the first."""
    first = await thread.start(Call(abs, 1), tool_call_id="call_7")

    with pytest.raises(Duplicate) as raised:
        await thread.start(Call(abs, 1), tool_call_id="call_7")
    assert raised.value.existing == first.id
