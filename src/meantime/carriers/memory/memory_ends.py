"""Both ends of the carrier in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meantime.carriers.ends.callback_guard import call_back
from meantime.ports.carrier import (
    CarrierState,
    FromOwner,
    FromWorker,
    Offered,
    StateChanged,
    check_free,
    check_name,
    check_size,
)

if TYPE_CHECKING:
    from .memory_broker import MemoryBroker

CLOSED = CarrierState(up=False, reason="The carrier is closed.")


class _End:
    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._changed: StateChanged | None = None
        self._dropped = 0

    @property
    def state(self) -> CarrierState:
        return self._broker.state if self._is_open else CLOSED

    @property
    def dropped(self) -> int:
        return self._dropped

    @property
    def _is_open(self) -> bool:
        return self._changed is not None

    def state_changed(self, state: CarrierState) -> None:
        if self._changed is not None:
            call_back(self._changed, state)

    def take_from_worker(self, worker: str, data: bytes) -> None:
        """Only an owner's end has a use for it."""

    def take_from_owner(self, worker: str, data: bytes) -> None:
        """Only the end of that worker has a use for it."""

    def _counted(self, was_sent: bool) -> bool:
        self._dropped += not was_sent
        return was_sent


class MemoryOwner(_End):
    def __init__(self, broker: MemoryBroker) -> None:
        super().__init__(broker)
        self._receive: FromWorker | None = None

    async def open(self, receive: FromWorker, changed: StateChanged) -> None:
        self._receive, self._changed = receive, changed
        self._broker.connect(self)
        call_back(changed, self.state)

    async def close(self) -> None:
        self._receive = self._changed = None
        self._broker.disconnect(self)

    async def add_pool(self, pool: str) -> None:
        self._broker.add_pool(check_name("pool", pool))

    def offer(self, pool: str, key: str, data: bytes) -> bool:
        check_name("pool", pool)
        check_name("offer", key)
        check_size("offer", data)

        def arrive() -> None:
            self._broker.put(pool, key, data)

        return self._counted(self._is_open and self._broker.carry(arrive, len(data), offer_to=pool))

    def withdraw(self, pool: str, key: str) -> None:
        check_name("pool", pool)
        check_name("offer", key)
        if self._is_open:
            self._broker.carry(lambda: self._broker.withdraw(pool, key), 0)

    async def is_empty(self, pool: str) -> bool:
        return self._is_open and self._broker.is_empty(check_name("pool", pool))

    def to_worker(self, worker: str, data: bytes) -> bool:
        check_name("worker", worker)
        check_size("message", data)

        def arrive() -> None:
            self._broker.tell_worker(worker, data)

        return self._counted(self._is_open and self._broker.carry(arrive, len(data)))

    def take_from_worker(self, worker: str, data: bytes) -> None:
        if self._receive is not None:
            call_back(self._receive, worker, data)


class MemoryWorker(_End):
    def __init__(self, broker: MemoryBroker, worker: str) -> None:
        super().__init__(broker)
        self._worker = check_name("worker", worker)
        self._receive: FromOwner | None = None

    @property
    def worker(self) -> str:
        return self._worker

    async def open(self, receive: FromOwner, changed: StateChanged) -> None:
        self._receive, self._changed = receive, changed
        self._broker.connect(self)
        call_back(changed, self.state)

    async def close(self) -> None:
        self._receive = self._changed = None
        self._broker.disconnect(self)

    async def pull(self, pool: str, free: int, wait: float) -> list[Offered]:
        check_name("pool", pool)
        check_free(free)
        clock = self._broker.clock
        over = clock.monotonic() + wait
        while self._is_open:
            taken = self._broker.take(pool, free)
            left = over - clock.monotonic()
            if taken or left <= 0:
                return taken
            await self._broker.wait(pool, left)
        return []

    def acknowledge(self, offered: Offered) -> None:
        if self._is_open:
            self._broker.carry(lambda: self._broker.acknowledge(offered), 0)

    def release(self, offered: Offered) -> None:
        if self._is_open:
            self._broker.carry(lambda: self._broker.release(offered), 0)

    def to_owner(self, data: bytes) -> bool:
        check_size("message", data)

        def arrive() -> None:
            self._broker.tell_owners(self._worker, data)

        return self._counted(self._is_open and self._broker.carry(arrive, len(data)))

    def take_from_owner(self, worker: str, data: bytes) -> None:
        if worker == self._worker and self._receive is not None:
            call_back(self._receive, data)
