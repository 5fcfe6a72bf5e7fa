"""What a conversation is told, until it was told enough."""

from __future__ import annotations

import asyncio

from meantime import NoticeRate, Settings, Thread

EACH = Settings(
    stop_grace=0.5,
    on_close="stop",
    notices=NoticeRate(seconds=0.0, per_minute=1_000_000),
    reconcile_every=0.2,
)
PATIENCE = 20.0  # seconds, only ever spent by a test that fails


async def told(thread: Thread, of: str, count: int) -> list[tuple[str, str]]:
    """The next notices about one task: kind and text, at least `count` of them. Others are dropped."""
    found: list[tuple[str, str]] = []
    wakes = aiter(thread.wakeups())
    async with asyncio.timeout(PATIENCE):
        while len(found) < count:
            await anext(wakes)
            async with thread.turn() as turn:
                found += [(one.kind.value, one.text) for one in turn.notices if one.task_id == of]
                await turn.ack()
    return found


async def first_look(thread: Thread, id: str) -> None:
    """Until the state before a change is kept: what comes from now on is a change."""
    async with asyncio.timeout(PATIENCE):
        while (await thread.get(id)).run.cursor is None:  # noqa: ASYNC110  nobody is told of a first look
            await asyncio.sleep(0.01)
