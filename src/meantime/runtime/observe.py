"""observe: the journal for dashboards and streams. An observer may come late; it never slows a run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from meantime.kernel.change import Change
from meantime.kernel.constraints import check_count
from meantime.kernel.errors import Closed
from meantime.kernel.model import Event
from meantime.ports.store import Committed

from .record import Record

MOST = 100_000  # events of one answer


class Observing:
    def __init__(self, record: Record) -> None:
        self._record = record
        self._sleepers: set[asyncio.Future[None]] = set()
        self._closed = False
        self._heard = 0  # the newest event whose task is up to date here

    def on_commit(self, change: Change, committed: Committed) -> None:
        self._heard = max(self._heard, committed.seq or 0)
        if committed.seq and self._sleepers:
            self._wake()

    def wake(self) -> None:
        """The journal has something new that is not the event of a commit."""
        self._wake()

    def _wake(self) -> None:
        sleepers, self._sleepers = self._sleepers, set()
        for sleeper in sleepers:
            if not sleeper.done():
                sleeper.set_result(None)

    def close(self) -> None:
        self._closed = True
        self._wake()

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        check_count(after, "after", 0, 1 << 62)
        check_count(limit, "limit", 1, MOST)
        found = await self._record.store.events(after, limit)
        await self._hear_of(found[-1].seq if found else 0)
        return found

    async def last_event(self) -> int:
        """The newest event. Its task can be looked at afterwards, and newer events can be waited for."""
        last = await self._record.store.last_event()
        await self._hear_of(last)
        return last

    async def _hear_of(self, seq: int) -> None:
        """The store knows of a commit before we do. A task must be what the journal says of it, because a
        view that is renewed by later events only would stay out of date."""
        if seq > self._heard:
            await self._record.drain()

    async def wait_events(self, after: int) -> None:
        """Returns when the journal may hold something newer than `after`."""
        check_count(after, "after", 0, 1 << 62)
        while not await self._record.store.events(after, 1):
            if self._closed:
                raise Closed
            sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._sleepers.add(sleeper)
            try:
                await sleeper
            finally:
                self._sleepers.discard(sleeper)
