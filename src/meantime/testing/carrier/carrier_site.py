"""A server with its ends, as the checks use it: every send is repeated until it has its effect."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Protocol

from meantime.ports.carrier import CarrierState, Offered, OwnerCarrier, WorkerCarrier

from ..suite.patience import PATIENCE, until

AGAIN = 0.3  # seconds after which a message that had no effect is sent again
UNDER_WAY = 0.1  # seconds after which a pull waits at its server, most likely: no check depends on that


class CarrierSite(Protocol):
    """A carrier for the checks: its ends, and ways to break its server.

    `ack_wait`: seconds after which its server gives away what was pulled and not acknowledged; short, as the
    checks wait for it. The pools that the checks use are "red" and "blue", the workers "w1" and "w2".
    """

    ack_wait: float

    def owner(self) -> OwnerCarrier:
        """A new end of the owner, not open yet."""
        ...

    def worker(self, name: str) -> WorkerCarrier:
        """A new end of this worker, not open yet."""
        ...

    async def stop_server(self) -> None:
        """As kill -9 does."""
        ...

    async def start_server(self) -> None: ...

    async def empty_server(self) -> None:
        """Deletes everything that the stopped server has stored of the carrier's."""
        ...

    async def cut_connections(self) -> None:
        """Breaks every connection; the server itself goes on."""
        ...


class OwnerEnd:
    """An open end of the owner, with what it received."""

    def __init__(self, carrier: OwnerCarrier) -> None:
        self.carrier = carrier
        self.received: list[tuple[str, bytes]] = []
        self.states: list[CarrierState] = []

    def receive(self, worker: str, data: bytes) -> None:
        self.received.append((worker, data))

    async def offer_until(self, pool: str, key: str, data: bytes, done: Callable[[], object]) -> None:
        """Offers it, and again whenever the queue is empty, as an owner does."""
        self.carrier.offer(pool, key, data)

        async def again() -> bool:
            if done():
                return True
            if await self.carrier.is_empty(pool) and not done():
                self.carrier.offer(pool, key, data)
            return bool(done())

        await until(again, f"the offer {key} had its effect")

    async def say_until(self, worker: str, data: bytes, done: Callable[[], object]) -> None:
        await repeat_until(lambda: self.carrier.to_worker(worker, data), done, "a message to the worker")

    async def empty(self, pool: str) -> None:
        """Waits until the queue is empty."""
        await until(lambda: self.carrier.is_empty(pool), f"the queue of {pool} is empty")


class WorkerEnd:
    """An open end of a worker, with what it received and pulled."""

    def __init__(self, carrier: WorkerCarrier) -> None:
        self.carrier = carrier
        self.received: list[bytes] = []
        self.states: list[CarrierState] = []
        self.pulled: list[Offered] = []

    async def pull(self, pool: str, free: int = 8, wait: float = 0.2) -> list[Offered]:
        offers = await self.carrier.pull(pool, free, wait)
        self.pulled.extend(offers)
        return offers

    async def begin_to_pull(self, pool: str) -> asyncio.Task[list[Offered]]:
        pulling = asyncio.create_task(self.pull(pool, wait=4 * PATIENCE))
        await asyncio.sleep(UNDER_WAY)
        return pulling

    async def pull_one(self, pool: str) -> Offered:
        """Pulls until something comes, and takes one."""

        async def some() -> list[Offered]:
            return await self.pull(pool, free=1)

        return (await until(some, f"{self.carrier.worker} pulls from {pool}"))[0]

    @asynccontextmanager
    async def working(self, pool: str, *, acknowledges: bool = True) -> AsyncGenerator[None]:
        """Goes on pulling, and acknowledges everything that it gets."""

        async def work() -> None:
            while True:
                for offered in await self.pull(pool):
                    if acknowledges:
                        self.carrier.acknowledge(offered)

        task = asyncio.create_task(work())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def say_until(self, data: bytes, done: Callable[[], object]) -> None:
        await repeat_until(lambda: self.carrier.to_owner(data), done, "a message to the owner")

    async def drain(self, owner: OwnerEnd, pool: str) -> None:
        """Takes everything out of the queue, including what comes again."""
        async with self.working(pool):
            await owner.empty(pool)


class Ends:
    """Opens the ends of a site, and closes them at the end of a check."""

    def __init__(self, site: CarrierSite) -> None:
        self.site = site
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Ends:
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._open.aclose()

    async def owner(self, *pools: str) -> OwnerEnd:
        end = OwnerEnd(self.site.owner())
        await end.carrier.open(end.receive, end.states.append)
        self._open.push_async_callback(end.carrier.close)
        for pool in pools or ("red",):
            await end.carrier.add_pool(pool)
        return end

    async def worker(self, name: str = "w1") -> WorkerEnd:
        end = WorkerEnd(self.site.worker(name))
        await end.carrier.open(end.received.append, end.states.append)
        self._open.push_async_callback(end.carrier.close)
        return end


async def repeat_until(send: Callable[[], object], done: Callable[[], object], what: str) -> None:
    next_time = 0.0

    async def ask() -> bool:
        nonlocal next_time
        if not done() and time.monotonic() >= next_time:
            next_time = time.monotonic() + AGAIN
            send()
        return bool(done())

    await until(ask, what)
