"""How many turns go to one model at once. A refusal halves it; every success lets a little more in."""

from __future__ import annotations

import asyncio
from collections import deque

from meantime.ports.clock import Alarm, Clock
from meantime.ports.session import Gate

LEAST, MOST = 1.0, 4_096.0  # until a provider says that it is too much, nobody waits
PAUSE = 1.0  # seconds, where the provider named none
LONGEST = 3600.0  # seconds that a provider can keep everybody out


class Capacity:
    """A gate that learns (additive increase, multiplicative decrease). Waiting agents are let in in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._room = MOST
        self._inside = 0
        self._closed_until = 0.0
        self._opening: Alarm | None = None  # while nobody may go in
        self._open = asyncio.Event()
        self._open.set()
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def _is_closed(self) -> bool:
        return self._opening is not None

    async def enter(self) -> None:
        if not self._waiting and not self._is_closed and self._inside < int(self._room):
            self._inside += 1
            return
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():  # let in just then
                self._inside -= 1
            else:
                self._waiting.remove(place)
            self._let_in()
            raise

    def leave(self, *, limited: bool = False, retry_after: float | None = None) -> None:
        self._inside -= 1
        self.record_result(limited=limited, retry_after=retry_after)

    def record_result(self, *, limited: bool, retry_after: float | None = None) -> None:
        if limited:
            if not self._is_closed:  # those that went in together are refused together: that counts once
                self._room = max(LEAST, min(self._room, self._inside + 1) / 2)
            pause = PAUSE if retry_after is None else min(LONGEST, max(0.0, retry_after))
            self._close(self._clock.monotonic() + pause)
        else:
            self._room = min(MOST, self._room + 1 / self._room)
        self._let_in()

    async def wait_open(self) -> None:
        """Without a place inside: only as long as nobody may go in."""
        while self._is_closed:
            await self._open.wait()

    def _close(self, until: float) -> None:
        if self._opening is not None:
            if until <= self._closed_until:
                return
            self._opening.cancel()
        self._closed_until = until
        self._open.clear()
        self._opening = self._clock.call_later(until - self._clock.monotonic(), self._reopen)

    def _reopen(self) -> None:
        self._opening = None
        self._open.set()
        self._let_in()

    def _let_in(self) -> None:
        while self._waiting and not self._is_closed and self._inside < int(self._room):
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                self._inside += 1


class ChildCapacity:
    """For the child of an agent that is inside: its parent may be waiting for it, so it waits for no room."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity

    async def enter(self) -> None:
        await self._capacity.wait_open()

    def leave(self, *, limited: bool = False, retry_after: float | None = None) -> None:
        self._capacity.record_result(limited=limited, retry_after=retry_after)


class Capacities:
    """One per provider and model."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_key: dict[str, Capacity] = {}

    def of(self, key: str, *, beside: bool = False) -> Gate:
        capacity = self._by_key.setdefault(key, Capacity(self._clock))
        return ChildCapacity(capacity) if beside else capacity
