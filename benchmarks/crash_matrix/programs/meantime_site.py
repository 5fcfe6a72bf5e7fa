"""The part that the programs of Meantime's own rows share. The argument is the name of an adapter."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from workbench import alpha, beta, converse, state_folder

from meantime import Meantime, Thread, background

SLOW = (background(alpha), background(beta))


async def hold(talk_of: Callable[[Thread], Any]) -> None:
    """One conversation with one adapter, until nobody talks any more."""
    async with Meantime.open(state_folder() / "work.db") as mt:
        talk = talk_of(mt.thread("main"))

        async def woken() -> None:
            said: AsyncIterator[str] = talk.woken()
            async for _ in said:
                pass

        await converse(talk.say, lambda: state(mt), woken())


async def state(mt: Meantime) -> dict[str, str]:
    return {task.title: task.status.value for task in await mt.list()}


def main(talk_of: Callable[[Thread], Any]) -> None:
    asyncio.run(hold(talk_of))
