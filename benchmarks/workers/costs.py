"""A no-op at a worker beside the same no-op here: CPU time of each process, and delays."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from meantime import Call, Meantime, Shell

from ..measure import cpu, folder, p50, ratio, table, us, verdict
from . import noops
from .site import HERE, PATIENCE, PLACE, Site, cpu_of, open_site

TASKS, GROUP, ROUNDS, ONE_BY_ONE = 2_000, 100, 3, 200
BARE_TRIPS = 500
MEMORY = Path("/dev/shm")  # a folder without a disk


class Cost(NamedTuple):
    """Seconds of CPU for one task, in each process."""

    owner: float
    worker: float
    broker: float


async def tell_all(mt: Meantime, name: str, count: int) -> None:
    """Until so many notices were told and acknowledged."""
    told = 0
    async for _ in mt.thread(name).wakeups():
        async with mt.thread(name).turn() as turn:
            told += len(turn.notices)
            await turn.ack()
        if told >= count:
            return


async def _many(site: Site, worker: int, place: str, name: str) -> Cost:
    thread = site.mt.thread(name)
    before = (cpu(), cpu_of(worker), cpu_of(site.broker))
    telling = asyncio.create_task(tell_all(site.mt, name, TASKS))
    for _ in range(TASKS // GROUP):
        await asyncio.gather(*(thread.start(Call(noops.noop), place=place) for _ in range(GROUP)))
    await asyncio.wait_for(telling, PATIENCE)
    after = (cpu(), cpu_of(worker), cpu_of(site.broker))
    return Cost(*((then - now) / TASKS for now, then in zip(before, after, strict=True)))


async def _start_to_told(site: Site, place: str, name: str) -> float:
    thread = site.mt.thread(name)
    times: list[float] = []
    wakes = aiter(thread.wakeups())
    for _ in range(ONE_BY_ONE):
        began = time.perf_counter()
        await thread.start(Call(noops.noop), place=place)
        told = 0
        while not told:
            await anext(wakes)
            async with thread.turn() as turn:
                told = len(turn.notices)
                await turn.ack()
        times.append(time.perf_counter() - began)
    return p50(times)


async def _cancel(site: Site) -> float:
    """From the cancel of a running function to its recorded ending."""
    thread = site.mt.thread("cancel")
    times: list[float] = []
    for _ in range(ONE_BY_ONE):
        handle = await thread.start(Call(noops.forever), place=PLACE)
        await _until_running(site, handle.id)
        began = time.perf_counter()
        await handle.cancel(wait=True)
        times.append(time.perf_counter() - began)
    return p50(times)


async def _until_running(site: Site, id: str) -> None:
    """The worker has said that it has begun: it was granted before, and its journal is written."""
    assert site.mt._pools is not None
    runs = site.mt._pools.state.runs
    async with asyncio.timeout(PATIENCE):
        while id not in runs or not runs[id].is_begun:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def _followed_line(site: Site) -> float:
    """From a line that is written at the worker to the one who follows it here: one clock, as both are on one
    machine. The command writes when it wrote."""
    line = "i=0; while [ $i -lt 100 ]; do sleep 0.03; date +%s.%N; i=$((i+1)); done"
    handle = await site.mt.thread("lines").start(Shell(line), place=PLACE)
    times: list[float] = []
    async for piece in handle.log.follow():
        now = time.time()
        times += [now - float(each) for each in piece.text.split()]
    return p50(times)


async def bare_trip(site: Site) -> float:
    """A request of nats-py and its answer, on the same server."""
    from nats.aio.client import Client
    from nats.aio.msg import Msg

    address = site.server.owner_address()
    ends = (Client(), Client())
    for end in ends:
        await end.connect(f"nats://{address.servers[0]}", user=address.user, password=address.password)

    async def answer(message: Msg) -> None:
        await message.respond(message.data)

    await ends[1].subscribe("bare", cb=answer)
    await ends[1].flush()
    times: list[float] = []
    for _ in range(BARE_TRIPS):
        began = time.perf_counter()
        await ends[0].request("bare", b"x" * 100, timeout=5)
        times.append(time.perf_counter() - began)
    for end in ends:
        await end.close()
    return p50(times)


async def run() -> None:
    with folder() as path:
        async with open_site(path) as site:
            worker = await site.add_worker("w1", 1_000)
            local, remote = Cost(9, 9, 9), Cost(9, 9, 9)
            for round in range(ROUNDS):
                local = min(local, await _many(site, worker, HERE, f"here-{round}"))
                remote = min(remote, await _many(site, worker, PLACE, f"there-{round}"))
            delays = [await _start_to_told(site, place, f"one-{place}") for place in (HERE, PLACE)]
    with tempfile.TemporaryDirectory(dir=MEMORY) as path:  # a bare request waits for no disk, either
        async with open_site(Path(path)) as site:
            await site.add_worker("w1", 1_000)
            bare = await bare_trip(site)
            cancel, line = await _cancel(site), await _followed_line(site)
            bare = (bare + await bare_trip(site)) / 2
    table(
        "No-op functions, told and acknowledged: CPU for one",
        ["", "owner", "worker", "broker", "start → told, p50"],
        [
            ["here", us(local.owner), "", "", us(delays[0])],
            ["at a worker, NATS", *map(us, remote), us(delays[1])],
        ],
    )
    rows = [
        [
            "owner's CPU, at a worker / here",
            ratio(remote.owner, local.owner),
            verdict(remote.owner / local.owner, 4),
        ],
        [
            "broker's CPU / owner's here",
            ratio(remote.broker, local.owner),
            verdict(remote.broker / local.owner, 0.5),
        ],
        ["start → told, at a worker / here", ratio(delays[1], delays[0]), verdict(delays[1] / delays[0], 4)],
        [
            f"cancel ({us(cancel)}) / bare NATS request ({us(bare)})",
            ratio(cancel, bare),
            verdict(cancel / bare, 10),
        ],
        [f"a followed line ({us(line)}) / bare NATS request", ratio(line, bare), verdict(line / bare, 10)],
    ]
    table("Workers: ratios of one run", ["", "ratio", "target"], rows)
