from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from meantime import Meantime, Settings
from meantime.app.system_clock import SystemClock
from meantime.app.worker_parts import make_worker
from meantime.carriers.memory import MemoryBroker
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


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    site = Site(tmp_path, MemoryBroker(SystemClock()))
    try:
        yield site
    finally:
        for name in list(site.workers):
            await site.leave(name)
        await site.close()


async def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
