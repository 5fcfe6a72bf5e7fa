"""A ring that all event streams share, each with a cursor of its own. A reader that falls out of it is
told so; it never holds up the others, and nothing is kept for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

from meantime.ports.clock import Alarm, Clock

MOST_BYTES = 16 << 20  # of the events that are kept


class Delta(NamedTuple):
    """One event of the stream, encoded once for everybody."""

    seq: int  # of the journal
    task_id: str
    thread: str
    batch: str
    frame: bytes


class Framed(Protocol):
    @property
    def frame(self) -> bytes: ...


F = TypeVar("F", bound=Framed)


class Ring(Generic[F]):
    def __init__(self, size: int, clock: Clock, most_bytes: int = MOST_BYTES) -> None:
        self._kept: deque[F] = deque()
        self._size = size
        self._most_bytes = most_bytes
        self._bytes = 0
        self._clock = clock
        self._waiting: dict[asyncio.Future[None], float] = {}  # and until when, by the monotonic clock
        self._alarm: Alarm | None = None  # at the latest when the first of them has waited enough
        self.end = 0  # how many were ever published: the cursor of a reader that has seen all
        self.closed = False
        self._joined = (0, 0, b"")  # from a cursor to the end, as most readers want it

    def publish(self, delta: F) -> None:
        self._kept.append(delta)
        self._bytes += len(delta.frame)
        while len(self._kept) > self._size or (self._bytes > self._most_bytes and len(self._kept) > 1):
            self._bytes -= len(self._kept.popleft().frame)
        self.end += 1
        self._wake()

    def close(self) -> None:
        self.closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        self._wake()

    def after(self, cursor: int) -> Sequence[F] | None:
        """The events since the cursor; None if some of them are no longer kept."""
        missing = self.end - cursor
        if missing > len(self._kept):
            return None
        return list(islice(self._kept, len(self._kept) - missing, None))

    def joined(self, cursor: int) -> bytes:
        """The result of `after`, as one text: made once for all readers that are equally far."""
        if self._joined[:2] != (cursor, self.end):
            text = b"".join([delta.frame for delta in self.after(cursor) or ()])
            self._joined = (cursor, self.end, text)
        return self._joined[2]

    async def wait(self, cursor: int, seconds: float, gone: asyncio.Future[None]) -> None:
        """Returns when there is something new, when the time is over, or when the reader is gone."""
        if cursor < self.end or self.closed or gone.done():
            return
        news: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake(_: object) -> None:
            if not news.done():
                news.set_result(None)

        gone.add_done_callback(wake)
        self._waiting[news] = self._clock.monotonic() + seconds
        if self._alarm is None:
            self._alarm = self._clock.call_later(seconds, self._time_over)
        try:
            await news
        finally:
            gone.remove_done_callback(wake)
            self._waiting.pop(news, None)

    def _time_over(self) -> None:
        """One alarm for all readers: most of them are told something long before their time is over."""
        self._alarm = None
        now = self._clock.monotonic()
        for news, until in list(self._waiting.items()):
            if until <= now and not news.done():
                news.set_result(None)
                del self._waiting[news]
        if self._waiting:
            self._alarm = self._clock.call_later(min(self._waiting.values()) - now, self._time_over)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for news in waiting:
            if not news.done():
                news.set_result(None)
