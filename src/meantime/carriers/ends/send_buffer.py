"""Sends that wait to be written, with a limit: callers never wait for the network."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from meantime.ports.carrier import MOST_BUFFERED, MOST_BUFFERED_BYTES

Item = TypeVar("Item")
OVERHEAD = 256  # bytes that an item costs besides its data


class SendBuffer(Generic[Item]):
    def __init__(self) -> None:
        self._items: deque[tuple[Item, int]] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._drained = asyncio.Event()
        self._drained.set()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item, size: int) -> bool:
        """False if there is no room for it."""
        size += OVERHEAD
        if len(self._items) >= MOST_BUFFERED or self._bytes + size > MOST_BUFFERED_BYTES:
            return False
        self._items.append((item, size))
        self._bytes += size
        self._filled.set()
        self._drained.clear()
        return True

    async def take(self, most: int) -> list[Item]:
        """Waits for something, and takes up to so many. Each is done when the next are asked for."""
        if not self._items:
            self._filled.clear()
            self._drained.set()
            await self._filled.wait()
        taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
        self._bytes -= sum(size for _, size in taken)
        return [item for item, _ in taken]

    async def drain(self, seconds: float) -> None:
        """Waits until everything was taken and done, for at most so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                await self._drained.wait()
        except TimeoutError:
            return

    def clear(self) -> list[Item]:
        """Empties it, and returns what was in it."""
        dropped = [item for item, _ in self._items]
        self._items.clear()
        self._bytes = 0
        self._drained.set()
        return dropped
