"""The event loop that something belongs to, and tasks that go on there beside their caller."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from meantime.kernel.errors import InvalidInput

T = TypeVar("T")


def check_loop(home: asyncio.AbstractEventLoop | None) -> None:
    """Raises InvalidInput where we do not run on this event loop; None is not bound to one yet. A waiter on
    one loop cannot be woken from another: the call would fail inside asyncio, or wait for ever.
    """
    if home is not None and _running() is not home:
        raise InvalidInput(
            "This Meantime was opened on another event loop.",
            hint="Use it on the loop that opened it, or use the Meantime of meantime.blocking.",
        )


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class BackgroundTasks:
    """The event loop alone keeps no reference to a task: one that nobody holds may vanish in the middle of
    its work. Each is held here until it is done. The task that is given back is its caller's to await; an
    error that nobody takes from it is logged by asyncio."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def cancel(self) -> None:
        """All of them, without waiting for their ends."""
        for task in self._tasks:
            task.cancel()

    async def wait(self, seconds: float | None = None) -> None:
        """Until all are done, and those that are started meanwhile, too; at most so many seconds."""
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        while self._tasks:
            left = None if until is None else until - loop.time()
            if left is not None and left <= 0:
                return
            await asyncio.wait(self._tasks, timeout=left)

    async def close(self) -> None:
        """Cancels all of them, and waits for their ends."""
        self.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
