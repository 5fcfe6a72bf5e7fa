"""Messages over the carriers, there and back, beside a bare request of nats-py on the same server."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from meantime.ports.carrier import OwnerCarrier, WorkerCarrier

ROUNDS = 1000
BATCHES = 3


async def run() -> None:
    from tests.carriers.nats_site import nats_site
    from tests.carriers.postgres_server import postgres_server, programs
    from tests.carriers.postgres_site import postgres_site

    from meantime.testing.carrier.carrier_site import Ends

    print("\n## Carriers: a message of 100 bytes there and back, one at a time, both ends in one process\n")
    print("| | p50, µs | × bare | CPU of this process, µs | × bare |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as stack:
            nats = await stack.enter_async_context(nats_site(Path(folder) / "nats"))
            async with Ends(nats) as ends:
                await ends.worker("w1")  # the server has read its accounts
            bare = await _bare(nats)
            _row("nats-py request", bare, bare)
            _row("NATS carrier", await _carrier(nats.owner(), nats.worker("w1")), bare)
            if programs() is not None:
                server = stack.enter_context(postgres_server())
                rows = await stack.enter_async_context(postgres_site(server))
                _row("PostgreSQL carrier", await _carrier(rows.owner(), rows.worker("w1")), bare)


def _row(name: str, measured: tuple[float, float], bare: tuple[float, float]) -> None:
    (wall, cpu), (bare_wall, bare_cpu) = measured, bare
    print(f"| {name} | {wall:,.0f} | {wall / bare_wall:.1f} | {cpu:,.0f} | {cpu / bare_cpu:.1f} |")
    sys.stdout.flush()


async def _measure(once: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Median of the round trips and CPU a round trip, of the best batch."""
    for _ in range(50):
        await once()
    best = (1e9, 1e9)
    for _ in range(BATCHES):
        times: list[float] = []
        cpu = time.process_time()
        for _ in range(ROUNDS):
            began = time.perf_counter()
            await once()
            times.append(time.perf_counter() - began)
        used = (time.process_time() - cpu) / ROUNDS
        best = min(best, (sorted(times)[ROUNDS // 2] * 1e6, used * 1e6))
    return best


async def _bare(site: object) -> tuple[float, float]:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

    address = site.server.owner_address()  # pyright: ignore[reportAttributeAccessIssue]
    ends = (Client(), Client())
    for end in ends:
        await end.connect(f"nats://{address.servers[0]}", user=address.user, password=address.password)

    async def answer(message: Msg) -> None:
        await message.respond(message.data)

    await ends[1].subscribe("bare", cb=answer)
    await ends[1].flush()
    data = b"x" * 100
    try:
        return await _measure(lambda: ends[0].request("bare", data, timeout=5))
    finally:
        for end in ends:
            await end.close()


async def _carrier(owner: OwnerCarrier, worker: WorkerCarrier) -> tuple[float, float]:
    back = asyncio.Event()
    await owner.open(lambda name, data: owner.to_worker(name, data), lambda state: None)
    await worker.open(lambda data: back.set(), lambda state: None)
    data = b"x" * 100

    async def once() -> None:
        back.clear()
        worker.to_owner(data)
        await asyncio.wait_for(back.wait(), 10)

    try:
        return await _measure(once)
    finally:
        await worker.close()
        await owner.close()
