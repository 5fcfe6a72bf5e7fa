"""A ring that all event streams share, each with a cursor of its own. A reader that falls out of it is
told so; it never holds up the others, and nothing is kept for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from meantime.ports.clock import Clock


class Delta(NamedTuple):
    """One event of the stream, encoded once for everybody."""

    seq: int  # of the journal
    task_id: str
    thread: str
    batch: str
    frame: bytes


class Ring:
    def __init__(self, size: int, clock: Clock) -> None:
        self._kept: deque[Delta] = deque(maxlen=size)
        self._clock = clock
        self._waiting: set[asyncio.Future[None]] = set()
        self.end = 0  # how many were ever published: the cursor of a reader that has seen all
        self.closed = False
        self._joined = (0, 0, b"")  # from a cursor to the end, as most readers want it

    def publish(self, delta: Delta) -> None:
        self._kept.append(delta)
        self.end += 1
        self._wake()

    def close(self) -> None:
        self.closed = True
        self._wake()

    def after(self, cursor: int) -> Sequence[Delta] | None:
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

        def wake(*_: object) -> None:
            if not news.done():
                news.set_result(None)

        alarm = self._clock.call_later(seconds, wake)
        gone.add_done_callback(wake)
        self._waiting.add(news)
        try:
            await news
        finally:
            alarm.cancel()
            gone.remove_done_callback(wake)
            self._waiting.discard(news)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for news in waiting:
            if not news.done():
                news.set_result(None)
