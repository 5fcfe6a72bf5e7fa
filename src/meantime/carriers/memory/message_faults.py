"""Faults of a network, drawn from a seed: the same seed loses the same messages."""

from __future__ import annotations

from random import Random

from msgspec import Struct


class MessageFaults(Struct, frozen=True):
    """Shares of everything that is carried, each from 0 to 1.

    Attributes:
        loss: This share never arrives.
        doubling: This share arrives twice.
        reordering: This share arrives after what is sent up to `behind` seconds later.
        delay: Everything arrives up to so many seconds late.
    """

    loss: float = 0.2
    doubling: float = 0.2
    reordering: float = 0.2
    delay: float = 3.0
    behind: float = 0.1

    def delays(self, random: Random) -> list[float]:
        """In how many seconds each copy of one message arrives. None does if it is lost."""
        if random.random() < self.loss:
            return []
        copies = 2 if random.random() < self.doubling else 1
        return [self._delay(random) for _ in range(copies)]

    def _delay(self, random: Random) -> float:
        late = random.uniform(0.0, self.delay)
        return late + self.behind if random.random() < self.reordering else late


NO_FAULTS = MessageFaults(loss=0.0, doubling=0.0, reordering=0.0, delay=0.0)
