"""What a conversation is told, until it was told enough."""

from __future__ import annotations

import asyncio

from tests.waiting import LIMIT, until_async

from meantime import NoticeRate, Settings, Thread

EACH = Settings(
    stop_grace=0.5,
    on_close="stop",
    notices=NoticeRate(seconds=0.0, per_minute=1_000_000),
    reconcile_every=0.2,
)


async def told(thread: Thread, of: str, count: int) -> list[tuple[str, str]]:
    """The next notices about one task: kind and text, at least `count` of them. Others are dropped."""
    found: list[tuple[str, str]] = []
    wakes = aiter(thread.wakeups())
    async with asyncio.timeout(LIMIT):
        while len(found) < count:
            await anext(wakes)
            async with thread.turn() as turn:
                found += [(one.kind.value, one.text) for one in turn.notices if one.task_id == of]
                await turn.ack()
    return found


async def told_ending(thread: Thread, of: str) -> str:
    """The text of its ending. Events before it are dropped."""
    kind = text = ""
    while kind != "ending":
        kind, text = (await told(thread, of, 1))[-1]
    return text


async def first_look(thread: Thread, id: str) -> None:
    """Until the state before a change is kept: what comes from now on is a change."""

    async def has_looked() -> bool:
        return (await thread.get(id)).run.cursor is not None

    await until_async(has_looked, "the watch has looked")
