"""An agent that is given the tools of one dialect, and calls them."""

from __future__ import annotations

from typing import Any

from tests.waiting import LIMIT

from meantime import Meantime, Message, Said, Turn


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
        await self.thread.wait(id, timeout=LIMIT)
        return id

    async def told(self) -> list[Message]:
        """What the conversation is told now."""
        async with self.thread.turn() as turn:
            messages = turn.render(self.dialect)
            await turn.ack()
        return messages
