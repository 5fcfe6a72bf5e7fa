"""An agent that is given the tools of one dialect, and calls them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from meantime import Meantime, Message, Said, Turn

PATIENCE = 20.0  # real seconds, only ever spent by a test that fails


class Speaker:
    """`speaker.task(prompt=…)` calls `background_task`, where its dialect is background."""

    def __init__(self, mt: Meantime, dialect: str, thread: str = "conv-1", **options: Any) -> None:
        self._mt = mt
        self.dialect = dialect
        self.thread = mt.thread(thread)
        self.toolset = self.thread.toolset(dialect, **options)

    def in_turn(self, turn: Turn) -> Speaker:
        return Speaker(self._mt, self.dialect, self.thread.id, turn=turn)

    async def call(self, verb: str, **arguments: Any) -> Said:
        return await self.toolset.call(f"{self.dialect}_{verb}", arguments, message_id="m-1")

    async def launch(self, description: str = "find the tests", agent: str = "explore", **more: Any) -> str:
        said = await self.call("task", description=description, prompt="Find them.", agent=agent, **more)
        assert not said.code, said.text
        return said.data["task_id"]

    async def done(self, description: str = "find the tests", agent: str = "explore", **more: Any) -> str:
        """One that has ended."""
        id = await self.launch(description, agent, **more)
        await self.thread.wait(id, timeout=PATIENCE)
        return id

    async def told(self) -> list[Message]:
        """What the conversation is told now."""
        async with self.thread.turn() as turn:
            messages = turn.render(self.dialect)
            await turn.ack()
        return messages


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110  a runner's inside has no event to wait for
            await asyncio.sleep(0)
