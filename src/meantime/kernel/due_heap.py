"""Ids by when they are due, on each clock: the next one is found without looking at the others."""

from __future__ import annotations

import heapq
from itertools import count

from .due_times import WALL, DueTime, Uptime

SLACK = 20  # entries of ids that are gone, beside as many as there are others


class DueHeap:
    """An id that is gone leaves its entry behind until that comes first, or until more than half are such."""

    def __init__(self) -> None:
        self._ids: dict[str, tuple[int, DueTime]] = {}  # with the number of its entry
        self._entries: dict[str, list[tuple[float, int, str]]] = {}  # by clock
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def entries(self) -> int:
        """How many there are, with those that are left behind."""
        return sum(map(len, self._entries.values()))

    def add(self, id: str, due: DueTime) -> None:
        clock, when = due.on_clock
        number = next(self._numbers)
        self._ids[id] = number, due
        heapq.heappush(self._entries.setdefault(clock, []), (when, number, id))

    def discard(self, id: str) -> bool:
        """Whether it was there."""
        if self._ids.pop(id, None) is None:
            return False
        if self.entries > 2 * len(self._ids) + SLACK:
            for heap in self._entries.values():
                heap[:] = [entry for entry in heap if self._is_current(entry)]
                heapq.heapify(heap)
        return True

    def _is_current(self, entry: tuple[float, int, str]) -> bool:
        found = self._ids.get(entry[2])
        return found is not None and found[0] == entry[1]

    def first(self, clock: str) -> float | None:
        """When the next one is due by this clock."""
        heap = self._entries.get(clock, [])
        while heap and not self._is_current(heap[0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def due(self, now: float, uptime: Uptime, most: int) -> list[str]:
        """Ids that are due, by both clocks, the longest overdue first. They stay until they are
        discarded."""
        found: list[tuple[float, str]] = []
        for clock, at in ((WALL, now), (uptime.boot, uptime.seconds)):
            taken: list[tuple[float, int, str]] = []
            while len(taken) < most and (first := self.first(clock)) is not None and first <= at:
                taken.append(heapq.heappop(self._entries[clock]))
            for entry in taken:
                heapq.heappush(self._entries[clock], entry)
            found += [(when - at, id) for when, _, id in taken]
        found.sort(key=lambda one: one[0])
        return [id for _, id in found[:most]]

    def leave_boot(self, boot: str) -> int:
        """Delays of other boots are counted by the wall clock from now on. Returns how many."""
        gone = [clock for clock in self._entries if clock not in (WALL, boot)]
        ids = [entry[2] for clock in gone for entry in self._entries.pop(clock) if self._is_current(entry)]
        for id in ids:
            self.add(id, DueTime(self._ids[id][1].at))
        return len(ids)
