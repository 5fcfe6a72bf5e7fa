"""When to take a turn, for an agent's loop of one's own: somebody said something, or something ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from meantime.conversation.turn import Turn
from meantime.kernel.errors import Closed, InvalidInput
from meantime.kernel.lifecycle import ACTIVE
from meantime.kernel.plain_text import plain
from meantime.ports.tasks import Tasks

SETTLE = 0.05  # seconds: what ends together is told together, and costs a model one question
AT_ONCE = 1_000


class Loop:
    """One voice: a turn at a time, with everything in it that was said or has ended until then."""

    def __init__(self, tasks: Tasks, thread: str, settle: float, options: dict[str, Any]) -> None:
        self._tasks = tasks
        self._thread = thread
        self._settle = settle
        self._options = options
        self._said: list[str] = []
        self._news = asyncio.Event()  # something was said, or nothing more will be
        self._closed = False
        self._seen = -1

    def say(self, text: str) -> None:
        """The person's words: they come as `turn.said`, at once where the agent is idle."""
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  untyped callers
            raise InvalidInput(f"say takes a text, not {type(text).__name__}.")
        self._said.append(plain(text))
        self._news.set()

    def close(self) -> None:
        """Nobody says more: `turns` goes on until nothing runs and everything is told. Leave it with
        `break` to end it at once."""
        self._closed = True
        self._news.set()

    async def turns(self) -> AsyncIterator[Turn]:
        """Turns to enter with `async with`, one after the other. Each has something new: words in
        `turn.said`, endings in `turn.notices`, or both."""
        while await self._is_due():
            said, self._said = tuple(self._said), []
            yield Turn(self._tasks, self._thread, said=said, **self._options)

    async def _is_due(self) -> bool:
        """False when it is over. A wake is asked for anew each time: one from before the last turn may be
        about endings that it has told."""
        while not self._said:
            self._news.clear()
            over = self._closed
            waking = asyncio.ensure_future(self._tasks.wait_wake(self._thread, self._seen))
            news = asyncio.ensure_future(self._nothing_left() if over else self._news.wait())
            try:
                await asyncio.wait([waking, news], return_when=asyncio.FIRST_COMPLETED)
                if waking.done():
                    self._seen = waking.result()
                    await asyncio.wait([news], timeout=self._settle)
                    return True
                news.result()
                if over:
                    return False
            except Closed:
                return False
            finally:
                waking.cancel()
                news.cancel()
                await asyncio.gather(waking, news, return_exceptions=True)
        return True

    async def _nothing_left(self) -> None:
        """Returns when nothing runs and everything is told; where something is unread, the wake comes."""
        while active := await self._tasks.list(self._thread, ACTIVE, limit=AT_ONCE):
            await self._tasks.wait([task.id for task in active], self._thread, until="any")
        if (await self._tasks.thread(self._thread)).unread:
            await asyncio.get_running_loop().create_future()
