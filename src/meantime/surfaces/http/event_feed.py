"""Follows the journal once for all streams, and publishes what happens in the ring."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Generic

from meantime.kernel.errors import Closed
from meantime.ports.clock import Clock, sleep
from meantime.ports.tasks import Tasks

from .event_encoding import deltas
from .event_ring import Delta, F, Ring
from .http_settings import HttpSettings
from .responses import Refusal

LOG = logging.getLogger("meantime.http")
AT_ONCE = 500  # events of the journal in one round
AT_ONCE_BUILT = 2  # bounded snapshots, whose tasks are all in memory while they are made
RETRY = 1.0  # seconds after a failing disk


class StreamCount:
    """The streams of all feeds together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.open = 0

    def add(self) -> None:
        if self.open >= self.most:
            text = f"{self.open} streams are open, and there are no more."
            raise Refusal(503, "too_many_streams", text, "Close one, or poll /v1/tasks.")
        self.open += 1


class JournalFeed(Generic[F]):
    """Follows the journal as long as somebody listens. A subclass says what is published of it."""

    def __init__(self, tasks: Tasks, settings: HttpSettings, clock: Clock, streams: StreamCount) -> None:
        self._tasks = tasks
        self._settings = settings
        self._clock = clock
        self._streams = streams
        self._clients = 0
        self._pump: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[None] | None = None
        self.ring: Ring[F] = Ring(settings.backlog, clock)
        self.building = asyncio.Semaphore(AT_ONCE_BUILT)
        self.seq = 0  # of the newest event that was published, or passed over

    @property
    def clients(self) -> int:
        return self._clients

    async def _publish(self) -> None:
        raise NotImplementedError

    async def join(self) -> None:
        """A stream begins. From here on nothing is missed: the ring has all that follows."""
        if self.ring.closed:
            raise Closed
        self._streams.add()
        self._clients += 1
        try:
            if self._pump is None:
                self._ready = asyncio.get_running_loop().create_future()
                self._pump = asyncio.create_task(self._follow(self._ready), name="meantime-http-feed")
            if self._ready is not None:
                await asyncio.shield(self._ready)
        except BaseException:
            await self.leave()
            raise

    async def leave(self) -> None:
        """The last stream stops the pump: who is not watched does not read the journal."""
        self._clients -= 1
        self._streams.open -= 1
        if self._clients == 0:
            await self._stop()

    async def close(self) -> None:
        self.ring.close()
        await self._stop()

    async def _stop(self) -> None:
        pump, self._pump = self._pump, None
        if pump is not None:
            pump.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await pump

    async def _follow(self, ready: asyncio.Future[None]) -> None:
        try:
            self.seq = await self._tasks.last_event()
            ready.set_result(None)
            while True:
                await sleep(self._clock, await self._round())
        except Closed:
            self.ring.close()
        finally:
            if not ready.done():
                ready.set_exception(Closed())
                ready.exception()  # nobody may be waiting for it

    async def _round(self) -> float:
        """Publishes what is new, and says how long to wait before the next round."""
        try:
            await self._news()
            await self._publish()
        except Closed:
            raise
        except Exception:  # of one round: the streams must not stand still for ever
            LOG.exception("The event streams could not follow the journal; trying again.")
            return RETRY
        return self._settings.batch

    async def _news(self) -> None:
        """Returns when there may be something to publish."""
        await self._tasks.wait_events(self.seq)

    async def _let_read(self) -> None:
        for _ in range(3):  # a wake, a write, and the one who waited for that write
            await asyncio.sleep(0)


class Feed(JournalFeed[Delta]):
    """Every event as seed 001's delta."""

    async def _publish(self) -> None:
        """Between pieces the streams get their turn, so that a burst does not throw a reader that
        keeps up out of the ring."""
        piece = max(1, self._settings.backlog // 4)
        events = await self._tasks.events(self.seq, AT_ONCE)
        published = 0
        async for delta in deltas(self._tasks, events):
            self.ring.publish(delta)
            self.seq = delta.seq
            published += 1
            if published % piece == 0:
                await self._let_read()
        if events:
            self.seq = events[-1].seq
