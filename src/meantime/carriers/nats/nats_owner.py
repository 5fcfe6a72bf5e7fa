"""The owner's end on NATS. It makes the stream and one consumer for each pool."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeAlias

import msgspec

from meantime.carriers.ends.callback_guard import call_back
from meantime.ports.carrier import (
    ACK_WAIT,
    FromWorker,
    StateChanged,
    check_name,
    check_size,
)

from .nats_address import NatsAddress
from .nats_client import NatsClient, NatsMessage
from .nats_end import NatsEnd, Publication
from .nats_queues import NatsQueues

JoinRequested: TypeAlias = Callable[[str, bytes], bytes | None]
TAKEN_WAIT = 2.0  # seconds after which an offer that the server did not confirm counts as lost


class NatsOwner(NatsEnd):
    """Args:
    address: The server, with an account that may do everything below its space.
    ack_wait: Seconds after which an offer that was pulled and not acknowledged is another worker's.
    join: Called with the id of a join line and a request that came with its login; returns the answer.
    """

    def __init__(
        self, address: NatsAddress, *, ack_wait: float = ACK_WAIT, join: JoinRequested | None = None
    ) -> None:
        super().__init__(address)
        self._join = join
        self._ack_wait = ack_wait
        self._receive: FromWorker | None = None
        self._queues: NatsQueues | None = None
        self._pools: set[str] = set()
        self._offers: Counter[str] = Counter()  # made so far, by pool
        self._not_taken: dict[int, tuple[str, float]] = {}  # pool and deadline of offers; oldest first
        self._number = 0

    async def open(self, receive: FromWorker, changed: StateChanged) -> None:
        self._receive = receive
        await self._open(changed)

    async def close(self) -> None:
        self._receive = None
        await super().close()

    async def add_pool(self, pool: str) -> None:
        if check_name("pool", pool) in self._pools:
            return
        self._pools.add(pool)
        if self._queues is not None and self.state.up:
            with suppress(Exception):  # then the next connection makes it, or `is_empty`
                await self._queues.make_consumer(pool)

    def offer(self, pool: str, key: str, data: bytes) -> bool:
        check_name("pool", pool)
        check_name("offer", key)
        check_size("offer", data)
        self._number += 1
        reply = f"{self._subjects.taken}.{self._number}"
        if not self._send(Publication(self._subjects.offer(pool, key), data, reply), len(data)):
            return False
        self._offers[pool] += 1
        self._not_taken[self._number] = (pool, asyncio.get_running_loop().time() + TAKEN_WAIT)
        return True

    def withdraw(self, pool: str, key: str) -> None:
        check_name("pool", pool)
        check_name("offer", key)
        purge = msgspec.json.encode({"filter": self._subjects.offer(pool, key)})
        self._send(Publication(f"$JS.API.STREAM.PURGE.{self._subjects.stream}", purge), len(purge))

    def to_worker(self, worker: str, data: bytes) -> bool:
        subject = self._subjects.to_worker(check_name("worker", worker))
        return self._send(Publication(subject, check_size("message", data)), len(data))

    async def is_empty(self, pool: str) -> bool:
        check_name("pool", pool)
        queues = self._queues
        if queues is None or not self.state.up or self._is_under_way(pool):
            return False
        made = self._offers[pool]
        try:
            found = await self._ask_if_empty(queues, pool)
        except Exception:  # of whatever kind: it is not certain
            return False
        return found and made == self._offers[pool] and self._queues is queues

    async def _ask_if_empty(self, queues: NatsQueues, pool: str) -> bool:
        if not await queues.has_consumer(pool):  # the server has forgotten: it gets a new queue
            await queues.make(sorted(self._pools | {pool}))
        return await queues.is_empty(pool)

    def _is_under_way(self, pool: str) -> bool:
        """Offers that the server has not confirmed."""
        for number in list(self._overdue()):
            del self._not_taken[number]
        return any(each == pool for each, _ in self._not_taken.values())

    def _overdue(self) -> Iterator[int]:
        now = asyncio.get_running_loop().time()
        for number, (_, until) in self._not_taken.items():
            if until > now:
                return
            yield number

    def _was_dropped(self, item: Publication) -> None:
        if item.reply:
            self._not_taken.pop(int(item.reply.rpartition(".")[2]), None)

    async def _prepare(self, client: NatsClient) -> None:
        self._queues = NatsQueues(client, self._subjects, self._address.replicas, self._ack_wait)
        await self._queues.make(sorted(self._pools))
        await client.subscribe(self._subjects.from_workers, cb=self._take_message)
        await client.subscribe(f"{self._subjects.taken}.*", cb=self._take_confirmation)
        if self._join is not None:
            await client.subscribe(self._subjects.all_joins, cb=self._take_join)
        await client.flush()

    async def _take_message(self, message: NatsMessage) -> None:
        if self._receive is not None:
            call_back(self._receive, message.subject.rpartition(".")[2], message.data)

    async def _take_confirmation(self, message: NatsMessage) -> None:
        """Taken; or refused because of a limit, or as there is no stream: it is under way no more."""
        number = message.subject.rpartition(".")[2]
        if number.isdecimal():
            self._not_taken.pop(int(number), None)

    async def _take_join(self, message: NatsMessage) -> None:
        id = message.subject.rpartition(".")[2]
        answer = None if self._join is None else await asyncio.to_thread(self._join, id, message.data)
        if answer is not None:
            self._send(Publication(self._subjects.joined(id), answer), len(answer))
