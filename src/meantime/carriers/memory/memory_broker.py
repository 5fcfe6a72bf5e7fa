"""The server of the carrier in memory: queues, the ends that are connected, and what is under way."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

from meantime.ports.carrier import ACK_WAIT, MOST_BUFFERED, MOST_BUFFERED_BYTES, CarrierState, Offered
from meantime.ports.clock import Clock

from .memory_queue import MemoryQueue
from .message_faults import NO_FAULTS, MessageFaults

if TYPE_CHECKING:
    from .memory_ends import MemoryOwner, MemoryWorker


class MemoryBroker:
    """Owner and workers of one process meet here.

    Args:
        clock: Delays and limits are measured with it.
        faults: Injected into everything that is carried; without them nothing is lost.
        seed: The seed of the faults.
        ack_wait: Seconds after which an offer that was pulled and not acknowledged can be pulled again.
    """

    def __init__(
        self, clock: Clock, faults: MessageFaults = NO_FAULTS, *, seed: int = 0, ack_wait: float = ACK_WAIT
    ) -> None:
        self.clock = clock
        self.state = CarrierState(up=True)
        self._faults = faults
        self._random = Random(seed)
        self._ack_wait = ack_wait
        self._life = 0  # counts stops: nothing that is under way survives one
        self._receipts = 0
        self._queues: dict[str, MemoryQueue] = {}
        self._under_way = 0
        self._under_way_bytes = 0
        self._offers_under_way: Counter[str] = Counter()  # by pool
        self._ends: set[MemoryOwner | MemoryWorker] = set()
        self._pulling: defaultdict[str, set[asyncio.Future[None]]] = defaultdict(set)

    def owner(self) -> MemoryOwner:
        from .memory_ends import MemoryOwner

        return MemoryOwner(self)

    def worker(self, name: str) -> MemoryWorker:
        from .memory_ends import MemoryWorker

        return MemoryWorker(self, name)

    # Faults of the server, for tests.

    def stop(self, reason: str = "The broker was stopped.") -> None:
        """Disconnects everybody, and loses what is under way. Queues are kept."""
        self._life += 1
        self._under_way = self._under_way_bytes = 0
        self._offers_under_way.clear()
        self._change(CarrierState(up=False, reason=reason))

    def start(self) -> None:
        self._change(CarrierState(up=True))

    def forget(self) -> None:
        """Loses the queues with everything in them."""
        self._queues.clear()

    # For the ends.

    def connect(self, end: MemoryOwner | MemoryWorker) -> None:
        self._ends.add(end)

    def disconnect(self, end: MemoryOwner | MemoryWorker) -> None:
        self._ends.discard(end)
        self._wake_all()  # a pull of this end returns

    def carry(self, deliver: Callable[[], object], size: int, offer_to: str = "") -> bool:
        """Has something arrive, with the faults there are. False if too much is under way."""
        if not self.state.up or self._under_way >= MOST_BUFFERED:
            return False
        if self._under_way_bytes + size > MOST_BUFFERED_BYTES:
            return False
        for delay in self._faults.delays(self._random):
            self._carry_one(delay, deliver, size, offer_to)
        return True

    def put(self, pool: str, key: str, data: bytes) -> None:
        self._receipts += 1
        self._queue(pool).put(Offered(pool, key, data, str(self._receipts)))
        self.wake(pool)

    def take(self, pool: str, free: int) -> list[Offered]:
        """Some that are taken may be lost on their way to the worker; others come twice."""
        if not self.state.up or pool not in self._queues:
            return []
        arrived: list[Offered] = []
        for offered in self._queues[pool].take(free, self.clock.monotonic()):
            arrived.extend([offered] * len(self._faults.delays(self._random)))
        return arrived[:free]

    def acknowledge(self, offered: Offered) -> None:
        self._queue(offered.pool).acknowledge(offered.receipt)

    def release(self, offered: Offered) -> None:
        self._queue(offered.pool).release(offered.receipt)
        self.wake(offered.pool)

    def withdraw(self, pool: str, key: str) -> None:
        self._queue(pool).withdraw(key)

    def is_empty(self, pool: str) -> bool:
        return self.state.up and not self._offers_under_way[pool] and not self._queue(pool)

    def add_pool(self, pool: str) -> None:
        self._queue(pool)

    def tell_owners(self, worker: str, data: bytes) -> None:
        for end in list(self._ends):
            end.take_from_worker(worker, data)

    def tell_worker(self, worker: str, data: bytes) -> None:
        for end in list(self._ends):
            end.take_from_owner(worker, data)

    async def wait(self, pool: str, seconds: float) -> None:
        """Until the queue may have something, for at most so many seconds."""
        due = self._queues[pool].next_expiry() if pool in self._queues else None
        if due is not None:
            seconds = max(0.0, min(seconds, due - self.clock.monotonic()))
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self.clock.call_later(seconds, lambda: _resolve(waiter))
        self._pulling[pool].add(waiter)
        try:
            await waiter
        finally:
            alarm.cancel()
            self._pulling[pool].discard(waiter)

    def wake(self, pool: str) -> None:
        for waiter in self._pulling[pool]:
            _resolve(waiter)

    def _carry_one(self, delay: float, deliver: Callable[[], object], size: int, offer_to: str) -> None:
        life = self._life
        self._count(1, size, offer_to)

        def arrive() -> None:
            if life == self._life:
                self._count(-1, -size, offer_to)
                deliver()

        self.clock.call_later(delay, arrive)

    def _count(self, one: int, size: int, offer_to: str) -> None:
        self._under_way += one
        self._under_way_bytes += size
        if offer_to:
            self._offers_under_way[offer_to] += one

    def _queue(self, pool: str) -> MemoryQueue:
        return self._queues.setdefault(pool, MemoryQueue(self._ack_wait))

    def _wake_all(self) -> None:
        for pool in list(self._pulling):
            self.wake(pool)

    def _change(self, state: CarrierState) -> None:
        if state == self.state:
            return
        self.state = state
        for end in list(self._ends):
            end.state_changed(state)
        self._wake_all()


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
