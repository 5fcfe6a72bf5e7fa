"""A private NATS server with its ends, for the conformance suite and the tests of faults."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.waiting import until_async

from meantime.carriers.nats.nats_owner import NatsOwner
from meantime.carriers.nats.nats_worker import NatsWorker
from meantime.carriers.nats.private_server import PrivateNats


class NatsSite:
    ack_wait = 1.0

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.server = PrivateNats(folder)

    def owner(self) -> NatsOwner:
        return NatsOwner(self.server.owner_address(), ack_wait=self.ack_wait)

    def worker(self, name: str) -> NatsWorker:
        return NatsWorker(self.server.worker_address(name), name)

    async def stop_server(self) -> None:
        await self.server.leave()
        running = self.server.process
        if running is not None and running.is_alive:
            os.kill(running.pid, signal.SIGKILL)
            await until_async(lambda: not running.is_alive, "the server is gone")

    async def start_server(self) -> None:
        await self.server.start()

    async def empty_server(self) -> None:
        shutil.rmtree(self.folder / "jetstream", ignore_errors=True)

    async def cut_connections(self) -> None:
        """A restart: NATS has no verb for it that an account of ours may use."""
        await self.stop_server()
        await self.start_server()


@asynccontextmanager
async def nats_site(folder: Path) -> AsyncGenerator[NatsSite]:
    site = NatsSite(folder)
    await site.server.start()
    for worker in ("w1", "w2"):
        site.server.add_worker(worker, ("red", "blue"))
    try:
        yield site
    finally:
        await site.server.stop()
