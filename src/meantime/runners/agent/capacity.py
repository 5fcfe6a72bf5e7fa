"""How many turns go to one model at once. A refusal halves it; every success lets a little more in."""

from __future__ import annotations

import asyncio
from collections import deque

from meantime.ports.clock import Clock

LEAST, MOST = 1.0, 64.0
PAUSE = 1.0  # seconds, where the provider named none


class Capacity:
    """A gate that learns (additive increase, multiplicative decrease)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._room = MOST
        self._inside = 0
        self._closed_until = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        while self._inside >= int(self._room) or self._clock.monotonic() < self._closed_until:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except BaseException:
                if turn.done() and not turn.cancelled():
                    self._let_in()  # it was our turn, and we do not take it
                raise
            finally:
                if turn in self._waiting:
                    self._waiting.remove(turn)
        self._inside += 1

    def leave(self, *, limited: bool = False, retry_after: float | None = None) -> None:
        self._inside -= 1
        if limited:
            self._room = max(LEAST, min(self._room, self._inside + 1) / 2)
            pause = PAUSE if retry_after is None else max(0.0, retry_after)
            self._closed_until = max(self._closed_until, self._clock.monotonic() + pause)
            self._clock.call_later(pause, self._let_in)
        else:
            self._room = min(MOST, self._room + 1 / self._room)
            self._let_in()

    def _let_in(self) -> None:
        free = int(self._room) - self._inside
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


class Capacities:
    """One per provider and model."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_key: dict[str, Capacity] = {}

    def of(self, key: str) -> Capacity:
        return self._by_key.setdefault(key, Capacity(self._clock))
