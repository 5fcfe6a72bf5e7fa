"""The memory store behind a writer's queue, as SQLite has it: operations wait, share a commit, and
answer together, in order, some seeded time later. Closing it forgets nothing, so a new life can follow."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

from meantime.kernel.change import Change
from meantime.ports.store import Committed
from meantime.stores.memory import MemoryStore

QUEUED = ("lease", "read", "settle", "release", "unpark", "park_unclaimed", "recover", "append", "purge")


class LaggingStore(MemoryStore):
    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng
        self._queue: list[tuple[asyncio.Future[Any], Callable[[], Any]]] = []
        self._pumping = False
        self.closed = True
        for name in QUEUED:
            setattr(self, name, self._lagging(getattr(super(), name)))

    async def open(self) -> None:
        self.closed = False
        self._queue, self._pumping = [], False

    async def close(self) -> None:
        while self._pumping:  # noqa: ASYNC110  ticks are the time of this store
            await asyncio.sleep(0)
        self.closed = True

    def commit(self, change: Change) -> asyncio.Future[Committed]:
        return self._later(lambda: self._commit(change))

    def _lagging(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def lagging(*args: Any, **kwargs: Any) -> Any:
            return await self._later(lambda: _now(method(*args, **kwargs)))

        return lagging

    def _later(self, operation: Callable[[], Any]) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if self.closed:
            raise AssertionError("a closed store was written to")
        if not self._pumping:
            self._pumping = True
            self._wait(loop, self._rng.randrange(4))
        self._queue.append((future, operation))
        return future

    def _wait(self, loop: asyncio.AbstractEventLoop, ticks: int) -> None:
        loop.call_soon(self._write, loop) if ticks == 0 else loop.call_soon(self._wait, loop, ticks - 1)

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        size = self._rng.randrange(len(self._queue)) + 1
        group, self._queue = self._queue[:size], self._queue[size:]
        answers = [(future, operation()) for future, operation in group]
        self._answer_later(loop, answers, self._rng.randrange(4))

    def _answer_later(self, loop: asyncio.AbstractEventLoop, answers: list[Any], ticks: int) -> None:
        if ticks:
            loop.call_soon(self._answer_later, loop, answers, ticks - 1)
            return
        for future, answer in answers:
            if not future.done():
                future.set_result(answer)
        self._pumping = bool(self._queue)
        if self._pumping:
            self._wait(loop, self._rng.randrange(4))


def _now(coroutine: Any) -> Any:
    """The memory store never waits, so its coroutines end at their first step."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("the memory store waited")
