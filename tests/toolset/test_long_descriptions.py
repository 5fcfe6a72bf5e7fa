"""A description that is too long for a text is cut with an ellipsis, in every dialect."""

from __future__ import annotations

import pytest

from meantime import Call, Meantime
from meantime.dialects import names

pytestmark = pytest.mark.anyio

LONG = "Read every module of the repository and note what it imports; " * 8


@pytest.mark.parametrize("name", names())
async def test_a_long_description_is_cut_with_an_ellipsis(name: str):
    async with Meantime.open(":memory:") as mt:
        thread = mt.thread("conv-1")
        await (await thread.start(Call(abs, -1), description=LONG)).wait()
        reminder = await thread.reminder(name)
        async with thread.turn() as turn:
            (message,) = turn.render(name)
            await turn.ack()
    text = "".join(part.text for part in message.parts)
    assert LONG[:40] in text
    assert LONG not in text
    for said in (text, reminder):
        assert "\u2026" in said
