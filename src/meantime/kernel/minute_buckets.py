"""The last hour, minute by minute: how much ran at once, and how runs ended. Bounded, whatever happens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .lifecycle import ENDED, Status
from .model import Event

MINUTES = 60
FAILURES = frozenset({Status.FAILED, Status.TIMED_OUT, Status.LOST})
_STEP = math.log(1.05)  # durations are kept by their order of size: a percentile is right within 3 %


class _Bucket:
    __slots__ = ("durations", "ended", "failed", "last", "peak")

    def __init__(self, running: int) -> None:
        self.peak = self.last = running
        self.ended = self.failed = 0
        self.durations: dict[int, int] = {}  # how many runs took about so long


class MinuteBuckets:
    """Counts along. `now` is wall time; a clock that is set back adds to the newest minute."""

    def __init__(self, running: int = 0) -> None:
        self._buckets: dict[int, _Bucket] = {}  # by minute, oldest first
        self._running = running

    def ran(self, running: int, now: float) -> None:
        """So much runs from now on."""
        bucket = self._at(now)
        self._running = bucket.last = running
        bucket.peak = max(bucket.peak, running)

    def ended(self, now: float, *, failed: bool, seconds: float | None) -> None:
        """A run ended."""
        bucket = self._at(now)
        bucket.ended += 1
        bucket.failed += failed
        if seconds is not None:
            place = _place(seconds)
            bucket.durations[place] = bucket.durations.get(place, 0) + 1

    def _at(self, now: float) -> _Bucket:
        minute = int(now // 60)
        bucket = self._buckets.get(minute)
        if bucket is None:
            newest = next(reversed(self._buckets), minute)
            if minute < newest:
                return self._buckets[newest]
            bucket = self._buckets[minute] = _Bucket(self._running)
            while len(self._buckets) > MINUTES + 1:  # the one before the hour says what ran when it began
                del self._buckets[next(iter(self._buckets))]
        return bucket

    def peaks(self, now: float) -> list[int]:
        """The most that ran at once in each of the last 60 minutes, oldest first."""
        last = int(now // 60)
        first = last - MINUTES + 1
        running = next((one.last for at, one in reversed(self._buckets.items()) if at < first), 0)
        found: list[int] = []
        for minute in range(first, last + 1):
            bucket = self._buckets.get(minute)
            found.append(running if bucket is None else bucket.peak)
            running = running if bucket is None else bucket.last
        return found

    def endings(self, now: float) -> tuple[int, int]:
        """How many runs failed in the last hour, and how many ended."""
        hour = list(self._hour(now))
        return sum(one.failed for one in hour), sum(one.ended for one in hour)

    def percentiles(self, now: float, *parts: float) -> list[float | None]:
        """Seconds that so many of the runs of the last hour took at most; None if nothing ended."""
        counts: dict[int, int] = {}
        for bucket in self._hour(now):
            for place, count in bucket.durations.items():
                counts[place] = counts.get(place, 0) + count
        return [_percentile(counts, part) for part in parts]

    def _hour(self, now: float) -> Iterable[_Bucket]:
        first = int(now // 60) - MINUTES + 1
        return (bucket for minute, bucket in self._buckets.items() if minute >= first)


def _place(seconds: float) -> int:
    return round(math.log(max(seconds, 0.001) * 1_000) / _STEP)


def _percentile(counts: dict[int, int], part: float) -> float | None:
    left = math.ceil(sum(counts.values()) * part)
    for place in sorted(counts):
        left -= counts[place]
        if left <= 0:
            return math.exp(place * _STEP) / 1_000
    return None


def of_journal(events: Sequence[Event], running: int) -> MinuteBuckets:
    """The same from the journal, for an owner that comes later; `running` is how much ran after these events.
    They may begin in the middle of a run: its duration is not known then."""
    begun: dict[str, float] = {}
    queued: set[str] = set()
    steps: list[tuple[Event, int, float | None]] = []
    for event in events:
        id = event.task_id
        if event.status is Status.QUEUED:
            queued.add(id)
        elif event.status is Status.RUNNING and id not in begun:
            begun[id] = event.at
            steps.append((event, 1, None))
        elif event.status in ENDED and event.kind == "ended":
            began = begun.pop(id, None)
            ran = began is not None or id not in queued
            steps.append((event, -1 if ran else 0, None if began is None else event.at - began))
            queued.discard(id)
    now = max(0, running - sum(step for _, step, _ in steps))
    found = MinuteBuckets(now)
    for event, step, seconds in steps:
        now = max(0, now + step)
        found.ran(now, event.at)
        if step <= 0:
            found.ended(event.at, failed=event.status in FAILURES, seconds=seconds)
    return found
