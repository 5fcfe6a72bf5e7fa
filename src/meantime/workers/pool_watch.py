"""Regular looks of the owner at its pools: queues that lost their offers, and work that nobody can perform;
and the numbers of it all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from meantime.kernel.pool_slots import need_of
from meantime.ports.carrier import OwnerCarrier
from meantime.ports.clock import Clock
from meantime.ports.worker_pools import PlacedTasks

from .effects import OwnerEffect
from .owner_state import LONGEST_STEP, OwnerState

WAIT = 600.0  # seconds that a task waits for a worker that can perform it, before it has failed
AT_ONCE = 100  # tasks that are given up in one tick
AGAIN = 0.1  # seconds between two looks at who can perform what: each is at all workers
MOST_POOLS = 50  # that are counted by name
COUNTED = (
    "offered", "claimed", "denied", "offered_again", "unbegun", "late_endings", "no_worker",
    "refused_messages", "lost_silent", "lost_restarted", "lost_at_worker",
)  # fmt: skip


class PoolWatch:
    def __init__(
        self, state: OwnerState, carrier: OwnerCarrier, clock: Clock, counts: Counter[str], wait: float
    ) -> None:
        self._state = state
        self._carrier = carrier
        self._clock = clock
        self._counts = counts
        self._wait = wait
        self._seen = 0  # changes of the workers
        self._looked = -math.inf
        self._given_up: set[str] = set()

    def has_changed(self) -> bool:
        """Whether the workers can perform something else than at the last look, which is a moment ago."""
        now = self._clock.monotonic()
        if self._state.changes == self._seen or now - self._looked < AGAIN:
            return False
        self._seen, self._looked = self._state.changes, now
        return True

    def given_up(self, ledger: PlacedTasks, passed: float) -> Iterator[tuple[str, str]]:
        """Tasks that have waited too long for a worker, and why none came. While the carrier is down nobody
        is missing, and while we were frozen no time has passed."""
        if not self._carrier.state.up:
            return
        overdue = ledger.overdue(min(passed, LONGEST_STEP), self._wait, AT_ONCE)
        self._given_up &= {task.id for task in overdue}
        for task in overdue:
            if task.id not in self._given_up:
                self._given_up.add(task.id)
                self._counts["no_worker"] += 1
                reason = self._state.missing(need_of(task)) or "there was no worker for it"
                yield task.id, f"No worker could perform it within {self._wait:g} s: {reason}."

    async def look_at(self, pool: str, passed: float) -> list[OwnerEffect]:
        """Offers that the carrier has lost."""
        if not await self._carrier.is_empty(pool):
            self._state.not_empty(pool)
            return []
        again = self._state.empty(pool, passed)
        self._counts["offered_again"] += len(again)
        return again

    def counters(self, following: int) -> Mapping[str, int]:
        workers = Counter(one.pool for one in self._state.about())
        pools = {f"pool.{pool}": count for pool, count in sorted(workers.items())[:MOST_POOLS]}
        numbers = {
            "carrier_up": int(self._carrier.state.up),
            "dropped": self._carrier.dropped,
            "unclaimed": len(self._state.offers),
            "unclaimed_age": round(self._state.oldest_offer()),
            "following": following,
            **{name: self._counts[name] for name in COUNTED},
            **pools,
        }
        return {f"workers.{name}": number for name, number in numbers.items()}
