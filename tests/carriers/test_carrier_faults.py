"""Faults of the carriers alone: frozen servers, floods, and everything that the memory carrier injects."""

from __future__ import annotations

import os
import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest
from tests.waiting import LIMIT, until_async

from meantime.carriers.ends.send_buffer import SendBuffer
from meantime.carriers.memory import MemoryBroker, MessageFaults
from meantime.ports.carrier import MOST_BUFFERED, MOST_BUFFERED_BYTES
from meantime.testing import FakeClock
from meantime.testing.carrier.carrier_site import Ends

from .nats_site import nats_site
from .postgres_server import PostgresServer
from .postgres_site import postgres_site

pytestmark = [pytest.mark.anyio, pytest.mark.servers]


async def _carried(seed: int, count: int) -> list[tuple[float, bytes]]:
    """When each of many messages arrives, sent a second apart."""
    clock = FakeClock()
    broker = MemoryBroker(clock, MessageFaults(), seed=seed)
    owner, worker = broker.owner(), broker.worker("w1")
    arrived: list[tuple[float, bytes]] = []
    await owner.open(lambda worker, data: arrived.append((clock.monotonic(), data)), lambda state: None)
    await worker.open(lambda data: None, lambda state: None)
    for number in range(count):
        worker.to_owner(b"%d" % number)
        await clock.advance(1.0)
    await clock.advance(10.0)
    return arrived


async def test_the_memory_carrier_loses_doubles_reorders_and_delays() -> None:
    arrived = await _carried(seed=7, count=2000)
    numbers = [int(data) for _, data in arrived]
    assert 0.17 < 1 - len(set(numbers)) / 2000 < 0.23, "a fifth is lost"
    assert 0.17 < len(numbers) / len(set(numbers)) - 1 < 0.23, "a fifth of the rest comes twice"
    assert sum(a > b for a, b in pairwise(numbers)) > 200, "the order is not kept"
    delays = [at - number for (at, _), number in zip(arrived, numbers, strict=True)]
    assert min(delays) >= 0.0
    assert 2.9 < max(delays) <= 3.11, "up to three seconds, and a tenth behind"


async def test_a_seed_repeats_its_faults() -> None:
    assert await _carried(3, 100) == await _carried(3, 100)
    assert await _carried(3, 100) != await _carried(4, 100)


async def test_an_offer_under_way_for_three_seconds_keeps_its_queue_from_being_empty() -> None:
    clock = FakeClock()
    late = MessageFaults(loss=0.0, doubling=0.0, reordering=0.0, delay=3.0)
    broker = MemoryBroker(clock, late, seed=1)
    owner, worker = broker.owner(), broker.worker("w1")
    await owner.open(lambda worker, data: None, lambda state: None)
    await worker.open(lambda data: None, lambda state: None)
    assert await owner.is_empty("red")
    owner.offer("red", "k1", b"")
    assert await worker.pull("red", 1, 0.0) == []
    assert not await owner.is_empty("red")
    await clock.advance(3.0)
    assert len(await worker.pull("red", 1, 0.0)) == 1
    broker.stop()
    owner.offer("red", "k2", b"")
    assert owner.dropped == 1


async def test_a_send_buffer_is_limited_by_count_and_by_bytes() -> None:
    buffer: SendBuffer[int] = SendBuffer()
    assert sum(buffer.put(number, 0) for number in range(MOST_BUFFERED + 100)) == MOST_BUFFERED
    assert buffer.clear() == list(range(MOST_BUFFERED))
    half = MOST_BUFFERED_BYTES // 2
    assert [buffer.put(number, half - 1000) for number in range(3)] == [True, True, False]
    assert await buffer.take(1) == [0]
    assert buffer.put(3, half - 1000), "what was taken made room"


async def test_a_nats_server_that_is_frozen_is_noticed_and_comes_back(tmp_path: Path) -> None:
    async with nats_site(tmp_path) as site, Ends(site) as ends:
        owner, worker = await ends.owner(), await ends.worker("w1")
        os.kill(site.server.process.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            for _ in range(4 * MOST_BUFFERED):
                owner.carrier.to_worker("w1", b"x" * 50_000)
            assert time.monotonic() - began < LIMIT, "a send waited"
            assert owner.carrier.dropped > 0
            assert not await owner.carrier.is_empty("red")
            await until_async(lambda: not owner.carrier.state.up, "the owner gives the connection up")
            await until_async(lambda: not worker.carrier.state.up, "the worker gives the connection up")
        finally:
            os.kill(site.server.process.pid, signal.SIGCONT)
        await worker.drain(owner, "red")
        await worker.say_until(b"back", lambda: ("w1", b"back") in owner.received)


@pytest.mark.parametrize("kind", ["nats", "postgres"])
async def test_a_flood_is_dropped_and_what_follows_arrives(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Both ends share one event loop here: neither reads while the other sends."""
    async with (
        nats_site(tmp_path) if kind == "nats" else postgres_site(request.getfixturevalue("postgres")) as site,
        Ends(site) as ends,
    ):
        owner, worker = await ends.owner(), await ends.worker("w1")
        sent = sum(owner.carrier.to_worker("w1", b"x" * 2000) for _ in range(5 * MOST_BUFFERED))
        assert sent == MOST_BUFFERED
        assert owner.carrier.dropped == 4 * MOST_BUFFERED
        await owner.say_until("w1", b"last", lambda: b"last" in worker.received)
        assert len(worker.received) <= MOST_BUFFERED + 200
        assert owner.carrier.state.up


async def test_without_faults_every_offer_is_pulled_once(postgres: PostgresServer, tmp_path: Path) -> None:
    async with nats_site(tmp_path) as nats, postgres_site(postgres) as rows:
        for site in (nats, rows):
            site.ack_wait = LIMIT
            async with Ends(site) as ends:
                owner, one, two = await ends.owner(), await ends.worker("w1"), await ends.worker("w2")
                for number in range(500):
                    owner.carrier.offer("red", f"k{number}", b"")
                async with one.working("red"), two.working("red"):
                    await owner.empty("red")
                keys = [offered.key for offered in one.pulled + two.pulled]
                assert sorted(keys) == sorted(f"k{number}" for number in range(500))
