"""Everything in a few numbers, for a page that is looked at all day: it costs the same for any history."""

from __future__ import annotations

from msgspec import Struct

MOST_THREADS = 50
MOST_BATCHES = 20
COUNTED = 1_000  # notices of a thread, or late ones, up to which they are counted


class ThreadStanding(Struct, frozen=True):
    """A conversation: what it works on, and what it is still to be told."""

    id: str
    active: int
    waiting: int  # of the active ones: for an answer
    unread: int
    leased: int
    parked: int
    last_event_at: float | None


class BatchStanding(Struct, frozen=True):
    """A batch of one conversation: n of m."""

    id: str
    thread: str
    ended: int
    failed: int
    total: int


class Overview(Struct, frozen=True, kw_only=True):
    """`counts` has every status. Cleared tasks are not counted."""

    counts: dict[str, int]
    running: tuple[int, ...] = ()  # the most that ran at once, for each of the last 60 minutes
    p50: float | None = None  # seconds that runs took, of those that ended in the last hour
    p95: float | None = None
    failed: int = 0  # in the last hour: failed, timed out or lost
    ended: int = 0
    late: int = 0  # notices that are parked, or that nobody was told for a minute
    notices: int = 0
    slots_used: int = 0
    slots_total: int = -1  # -1 is no limit
    queued: int = 0
    threads: tuple[ThreadStanding, ...] = ()  # where something happened last comes first
    batches: tuple[BatchStanding, ...] = ()
