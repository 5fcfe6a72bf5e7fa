"""The conversation of Meantime's programs: it is woken, takes what it is told, and acknowledges it."""

from __future__ import annotations

import asyncio

from meantime import Completed, Thread


class Telling:
    """result(id) waits until the conversation was told of the task and has acknowledged it."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        self._told: dict[str, asyncio.Future[float]] = {}
        self._talking = asyncio.create_task(self._talk())

    async def result(self, id: str) -> float:
        return await self._future(id)

    async def _talk(self) -> None:
        async for _ in self._thread.wakeups():
            async with self._thread.turn(limit=1_000) as turn:
                endings = [notice.task for notice in turn.notices]
                await turn.ack()
            for task in endings:
                if isinstance(task.outcome, Completed):
                    self._future(task.id).set_result(float(str(task.outcome.result)))
                else:
                    self._future(task.id).set_exception(RuntimeError(task.status.value))

    def _future(self, id: str) -> asyncio.Future[float]:
        return self._told.setdefault(id, asyncio.get_running_loop().create_future())
