"""Counts over many tasks, for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from .lifecycle import Status


class Heap(NamedTuple):
    """Tasks that are alike: how many, and what their ended runs took, in seconds."""

    status: Status
    resumed: bool
    agent: str
    tasks: int
    timed: int = 0  # how many of them have a duration
    seconds: float = 0.0
    longest: float | None = None
    shortest: float | None = None


class Statistics(Struct, frozen=True):
    """A summary of a set of tasks."""

    heaps: tuple[Heap, ...] = ()

    @property
    def total(self) -> int:
        return sum(heap.tasks for heap in self.heaps)

    @property
    def by_agent(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for heap in self.heaps:
            found[heap.agent] = found.get(heap.agent, 0) + heap.tasks
        return found

    @property
    def average(self) -> float | None:
        timed = sum(heap.timed for heap in self.heaps)
        return sum(heap.seconds for heap in self.heaps) / timed if timed else None

    @property
    def longest(self) -> float | None:
        return max(_known(heap.longest for heap in self.heaps), default=None)

    @property
    def shortest(self) -> float | None:
        return min(_known(heap.shortest for heap in self.heaps), default=None)


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
