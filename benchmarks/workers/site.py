"""An owner in this process, a NATS server and workers beside it, and the CPU time of each."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from meantime import Meantime
from meantime.carriers.nats.nats_owner import NatsOwner
from meantime.carriers.nats.private_server import PrivateNats

from ..measure import TICKS, UNLIMITED

HERE, PLACE = "here", "pool:default"
PATIENCE = 300.0


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident(pid: int | str = "self") -> int:
    """Bytes of memory that a process has."""
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Site:
    def __init__(self, mt: Meantime, server: PrivateNats, folder: Path) -> None:
        self.mt = mt
        self.server = server
        self._folder = folder
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def broker(self) -> int:
        assert self.server.process is not None
        return self.server.process.pid

    async def add_worker(self, name: str, slots: int) -> int:
        """Returns its pid, once the owner has heard of it."""
        url = self.server.add_worker(name, ("default",)).url()
        pools = self.mt._pools
        assert pools is not None
        home = self._folder / f"home-{name}"
        words = [url, name, str(home), pools.public_key, str(slots)]
        pid = self._start(words)
        async with asyncio.timeout(PATIENCE):
            while name not in {one.name for one in pools.about()}:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        return pid

    def _start(self, words: list[str]) -> int:
        child = subprocess.Popen([sys.executable, "-m", "benchmarks.workers.worker", *words])
        self._children.append(child)
        return child.pid

    def end(self) -> None:
        for child in self._children:
            child.kill()
            child.wait()


@asynccontextmanager
async def open_site(folder: Path) -> AsyncIterator[Site]:
    server = PrivateNats(folder / "nats")
    await server.start()
    try:
        owner = NatsOwner(server.owner_address())
        async with Meantime.open(folder / "work.db", carrier=owner, settings=UNLIMITED) as mt:
            site = Site(mt, server, folder)
            try:
                yield site
            finally:
                site.end()
    finally:
        await server.stop()
