"""Every carrier passes every check of the public conformance suite."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from tests.carriers.nats_site import nats_site

from meantime.app.system_clock import SystemClock
from meantime.carriers.memory import MemoryBroker, MessageFaults
from meantime.carriers.memory.memory_ends import MemoryOwner, MemoryWorker
from meantime.carriers.memory.message_faults import NO_FAULTS
from meantime.testing.carrier import CARRIER_CHECKS, CarrierSite, Check, exercise_carrier

pytestmark = pytest.mark.anyio

# A fifth of everything is lost and a fifth doubled; the delays are short, as these checks use real time.
FAULTS = MessageFaults(loss=0.2, doubling=0.2, reordering=0.3, delay=0.1, behind=0.05)


class MemorySite:
    ack_wait = 0.4

    def __init__(self, faults: MessageFaults = NO_FAULTS) -> None:
        self._broker = MemoryBroker(SystemClock(), faults, ack_wait=self.ack_wait)

    def owner(self) -> MemoryOwner:
        return self._broker.owner()

    def worker(self, name: str) -> MemoryWorker:
        return self._broker.worker(name)

    async def stop_server(self) -> None:
        self._broker.stop()

    async def start_server(self) -> None:
        self._broker.start()

    async def empty_server(self) -> None:
        self._broker.forget()

    async def cut_connections(self) -> None:
        self._broker.stop()
        self._broker.start()


@asynccontextmanager
async def _memory(folder: Path) -> AsyncGenerator[CarrierSite]:
    yield MemorySite()


@asynccontextmanager
async def _faulty_memory(folder: Path) -> AsyncGenerator[CarrierSite]:
    yield MemorySite(FAULTS)


SITES: dict[str, Callable[[Path], AbstractAsyncContextManager[CarrierSite]]] = {
    "memory": _memory,
    "memory-with-faults": _faulty_memory,
    "nats": nats_site,
}


@pytest.mark.parametrize("check", CARRIER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", SITES)
async def test_every_carrier_keeps_the_contract(kind: str, check: Check, tmp_path: Path) -> None:
    async with SITES[kind](tmp_path) as site:
        await check(site)


async def test_exercise_carrier_names_the_check_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mixed(MemorySite):
        def worker(self, name: str) -> MemoryWorker:
            return super().worker("w1")

    @asynccontextmanager
    async def mixed() -> AsyncGenerator[CarrierSite]:
        yield Mixed()

    monkeypatch.setattr("meantime.testing.carrier.carrier_site.PATIENCE", 2.0)
    with pytest.raises(AssertionError, match="its_worker_and_no_other: the second was told"):
        await exercise_carrier(mixed)
