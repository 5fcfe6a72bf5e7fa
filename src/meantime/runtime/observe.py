"""observe: the journal for dashboards and streams. An observer may come late; it never slows a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from meantime.kernel.change import Change
from meantime.kernel.errors import Closed
from meantime.kernel.events import Event
from meantime.kernel.given import check_count
from meantime.ports.store import Committed

from .record import Record

MOST = 100_000  # events of one answer


class Observing:
    def __init__(self, record: Record) -> None:
        self._record = record
        self._sleepers: list[asyncio.Future[None]] = []
        self._closed = False

    def heard(self, change: Change, committed: Committed) -> None:
        if committed.seq and self._sleepers:
            self._wake()

    def _wake(self) -> None:
        sleepers, self._sleepers = self._sleepers, []
        for sleeper in sleepers:
            if not sleeper.done():
                sleeper.set_result(None)

    def close(self) -> None:
        self._closed = True
        self._wake()

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        check_count(after, "after", 0, 1 << 62)
        check_count(limit, "limit", 1, MOST)
        return await self._record.store.events(after, limit)

    async def wait_events(self, after: int) -> None:
        """Returns when the journal may hold something newer than `after`."""
        check_count(after, "after", 0, 1 << 62)
        while not await self._record.store.events(after, 1):
            if self._closed:
                raise Closed
            sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._sleepers.append(sleeper)
            try:
                await sleeper
            finally:
                if sleeper in self._sleepers:
                    self._sleepers.remove(sleeper)
