"""Every carrier passes every check of the public conformance suite."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path

import pytest
from tests.carriers.nats_site import nats_site
from tests.carriers.postgres_server import PostgresServer, postgres_server
from tests.carriers.postgres_site import postgres_site

from meantime.app.system_clock import SystemClock
from meantime.carriers.memory import MemoryBroker, MessageFaults
from meantime.carriers.memory.memory_ends import MemoryOwner, MemoryWorker
from meantime.carriers.memory.message_faults import NO_FAULTS
from meantime.testing.carrier import (
    CARRIER_CHECKS,
    CarrierSite,
    Check,
    exercise_carrier,
    message_checks,
)

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


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


def _site(
    kind: str, folder: Path, request: pytest.FixtureRequest
) -> AbstractAsyncContextManager[CarrierSite]:
    match kind:
        case "memory":
            return nullcontext(MemorySite())
        case "memory-with-faults":
            return nullcontext(MemorySite(FAULTS))
        case "nats":
            return nats_site(folder)
        case _:
            return postgres_site(request.getfixturevalue("postgres"))


KINDS = ("memory", "memory-with-faults", "nats", "postgres")
CASES = [
    pytest.param(
        kind,
        check,
        id=f"{kind}-{check.__name__}",
        marks=[] if kind == "memory" else pytest.mark.servers,
    )
    for kind in KINDS
    for check in CARRIER_CHECKS
]


@pytest.mark.parametrize(("kind", "check"), CASES)
async def test_every_carrier_keeps_the_contract(
    kind: str, check: Check, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with _site(kind, tmp_path, request) as site:
        await check(site)


async def test_exercise_carrier_names_the_check_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mixed(MemorySite):
        def worker(self, name: str) -> MemoryWorker:
            return super().worker("w1")

    @asynccontextmanager
    async def mixed() -> AsyncGenerator[CarrierSite]:
        yield Mixed()

    monkeypatch.setattr("meantime.testing.carrier.carrier_suite.CARRIER_CHECKS", message_checks.CHECKS)
    with pytest.raises(AssertionError, match="its_worker_and_no_other: the second was told"):
        await exercise_carrier(mixed)
