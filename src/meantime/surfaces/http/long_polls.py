"""Requests that wait: they end when what they wait for comes, when the time is over, when the client goes
away, and when the server closes. While nothing happens they cost nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

from starlette.types import Receive

from meantime.kernel.errors import Closed
from meantime.ports.clock import Clock

from .responses import Refusal

T = TypeVar("T")


class Poll:
    """One request that waits."""

    def __init__(self, clock: Clock, receive: Receive) -> None:
        self._clock = clock
        self.closed = asyncio.get_running_loop().create_future()  # the door closes
        self.gone = asyncio.ensure_future(wait_disconnect(receive))

    async def first(self, work: Awaitable[T], seconds: float | None = None) -> T | None:
        """The result of the work; None when the time is over, or nobody waits any more: then the work is
        cancelled, and has ended.
        """
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = None if seconds is None else self._clock.call_later(seconds, lambda: _set(over))
        doing = asyncio.ensure_future(work)
        try:
            await asyncio.wait({doing, over, self.closed, self.gone}, return_when=asyncio.FIRST_COMPLETED)
            return doing.result() if doing.done() else None
        finally:
            if alarm is not None:
                alarm.cancel()
            if not doing.done():
                doing.cancel()
                await asyncio.wait({doing})


class Polls:
    def __init__(self, clock: Clock, most: int) -> None:
        self._clock = clock
        self._most = most
        self._open: set[Poll] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._open)

    @asynccontextmanager
    async def waiting(self, receive: Receive) -> AsyncGenerator[Poll]:
        """The body of the request must have been read: what comes after it is that the client goes."""
        if self._closed:
            raise Closed
        if len(self._open) >= self._most:
            text = f"{len(self._open)} requests wait already, and there are no more."
            raise Refusal(503, "too_many_waiting", text, "Ask again later, or use one /v1/events for all.")
        poll = Poll(self._clock, receive)
        self._open.add(poll)
        try:
            yield poll
        finally:
            self._open.discard(poll)
            poll.gone.cancel()

    def close(self) -> None:
        self._closed = True
        for poll in self._open:
            _set(poll.closed)


async def wait_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass  # a body that nobody asked for


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
