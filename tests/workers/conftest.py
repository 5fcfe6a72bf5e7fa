from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until_async

from meantime import Meantime, Settings, Task
from meantime.app.system_clock import SystemClock
from meantime.app.worker_parts import make_worker
from meantime.carriers.memory import MemoryBroker
from meantime.workers.owner_state import LONGEST_STEP
from meantime.workers.pools import WorkerPools
from meantime.workers.worker_process import Worker

from . import jobs

PLACE = "pool:default"
JOBS = jobs.__name__


class Site:
    """An owner and workers of one process, which meet at a carrier in memory."""

    def __init__(self, folder: Path, broker: MemoryBroker) -> None:
        self.folder = folder
        self.broker = broker
        self.stack = AsyncExitStack()
        self.workers: dict[str, Worker] = {}
        self._mt: Meantime | None = None

    @property
    def mt(self) -> Meantime:
        assert self._mt is not None
        return self._mt

    @property
    def pools(self) -> WorkerPools:
        pools = self.mt._pools
        assert pools is not None
        return pools

    async def open(self, **settings: Any) -> Meantime:
        given = Settings(**settings)
        self._mt = await Meantime.open(
            self.folder / "work.db", carrier=self.broker.owner(), settings=given, durability="fast"
        )
        return self._mt

    async def close(self) -> None:
        mt, self._mt = self._mt, None
        if mt is not None:
            await mt.close()

    async def worker(self, name: str = "w1", **given: Any) -> Worker:
        given = {"tools": [JOBS], "shell": True, "slots": 4} | given
        worker = make_worker(
            self.broker.worker(name), self.folder / f"home-{name}", self.pools.public_key, **given
        )
        await worker.open()
        self.workers[name] = worker
        return worker

    async def leave(self, name: str = "w1") -> None:
        await self.workers.pop(name).close()

    async def lose(self, name: str = "w1") -> None:
        """It leaves, and the owner has waited for it in vain."""
        await self.leave(name)
        await self.forget(name)

    async def forget(self, name: str = "w1") -> None:
        """The owner has waited in vain for this worker, which left."""
        owner = self.pools.state

        def is_forgotten() -> bool:
            for (worker, _), state in owner.workers.items():
                if worker == name:
                    state.silent = owner._patience
            return not any(worker == name for worker, _ in owner.workers)

        await until_async(is_forgotten, f"the owner has forgotten {name}")

    async def leave_for_a_while(self, name: str = "w1") -> None:
        """It leaves, and the owner waits for it still."""
        await self.leave(name)
        await until_async(lambda: not self.broker._under_way, "nothing is on its way any more")
        for (worker, _), state in self.pools.state.workers.items():
            if worker == name:
                state.silent = 20.0

    def pass_time(self, seconds: float) -> None:
        """At the owner, in steps that it counts whole."""
        for _ in range(math.ceil(seconds / LONGEST_STEP)):
            self.pools._alarm.cancel()
            self.pools._ticked -= LONGEST_STEP
            self.pools._tick()


async def ended(mt: Meantime, id: str) -> Task:
    """A task that this owner may not have started."""

    async def is_over() -> Task | None:
        task = await mt.get(id)
        return task if task.ended else None

    task = await until_async(is_over, "the task has ended")
    assert task is not None
    return task


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    site = Site(tmp_path, MemoryBroker(SystemClock()))
    try:
        yield site
    finally:
        for name in list(site.workers):
            await site.leave(name)
        await site.close()
