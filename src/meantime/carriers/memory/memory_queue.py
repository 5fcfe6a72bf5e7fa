"""The queue of one pool: offers that wait, and offers that were pulled and not acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from meantime.ports.carrier import Offered

MOST_QUEUED = 65_536  # offers in one queue; more are lost


class MemoryQueue:
    def __init__(self, ack_wait: float) -> None:
        self._ack_wait = ack_wait
        self._waiting: dict[str, Offered] = {}  # by receipt, oldest first
        self._held: dict[str, tuple[Offered, float]] = {}  # with when it waits again; soonest first

    def __len__(self) -> int:
        return len(self._waiting) + len(self._held)

    def put(self, offered: Offered) -> None:
        if len(self) < MOST_QUEUED:
            self._waiting[offered.receipt] = offered

    def take(self, free: int, now: float) -> list[Offered]:
        self._expire(now)
        taken = list(islice(self._waiting.values(), free))
        for offered in taken:
            del self._waiting[offered.receipt]
            self._held[offered.receipt] = (offered, now + self._ack_wait)
        return taken

    def acknowledge(self, receipt: str) -> None:
        """Even one that came too late and waits again: the offer is done."""
        self._held.pop(receipt, None)
        self._waiting.pop(receipt, None)

    def release(self, receipt: str) -> None:
        found = self._held.pop(receipt, None)
        if found is not None:
            self._waiting[receipt] = found[0]

    def withdraw(self, key: str) -> None:
        for receipt in [receipt for receipt, offered in self._waiting.items() if offered.key == key]:
            del self._waiting[receipt]

    def next_expiry(self) -> float | None:
        return next((until for _, until in self._held.values()), None)

    def _expire(self, now: float) -> None:
        for receipt in list(self._overdue(now)):
            self.release(receipt)

    def _overdue(self, now: float) -> Iterator[str]:
        for receipt, (_, until) in self._held.items():
            if until > now:
                return
            yield receipt
