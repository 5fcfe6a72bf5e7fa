"""20,000 functions that run at two workers: the owner's memory for each, and starts beside them."""

from __future__ import annotations

import asyncio
import gc

from meantime import Call

from ..measure import cpu, folder, ratio, table, us, verdict
from . import noops
from .costs import tell_all
from .site import PATIENCE, PLACE, Site, open_site, resident

ACTIVE, WORKERS, GROUP, PROBE = 20_000, 3, 100, 1_000


async def _probe(site: Site, name: str) -> float:
    """The owner's CPU for the start of one no-op at a worker, until it is told."""
    thread = site.mt.thread(name)
    telling = asyncio.create_task(tell_all(site.mt, name, PROBE))
    before = cpu()
    for _ in range(PROBE // GROUP):
        await asyncio.gather(*(thread.start(Call(noops.noop), place=PLACE) for _ in range(GROUP)))
    await asyncio.wait_for(telling, PATIENCE)
    return (cpu() - before) / PROBE


async def run() -> None:
    with folder() as path:
        async with open_site(path) as site:
            for number in range(WORKERS):
                await site.add_worker(f"w{number}", 8_000)
            await _probe(site, "warm")
            empty = min([await _probe(site, f"empty-{n}") for n in range(2)])
            gc.collect()
            before = resident()
            thread = site.mt.thread("active")
            for _ in range(ACTIVE // GROUP):
                await asyncio.gather(*(thread.start(Call(noops.forever), place=PLACE) for _ in range(GROUP)))
            assert site.mt._pools is not None
            async with asyncio.timeout(PATIENCE):
                while len(site.mt._pools.state.runs) < ACTIVE:  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            gc.collect()
            each = (resident() - before) / ACTIVE
            idle = cpu()
            await asyncio.sleep(5.0)  # a span of time, in which nothing but `alive` happens
            idle = (cpu() - idle) / 5.0
            full = min([await _probe(site, f"full-{n}") for n in range(2)])
    rows = [
        ["memory of the owner for each", f"{each / 1024:.1f} KB", verdict(each / 1024, 10)],
        [f"starts at {ACTIVE:,} active / at 0, by CPU ({us(full)}, {us(empty)})", ratio(empty, full),
         verdict(empty / full, 0.7, at_most=False)],
        ["the owner's CPU while they do nothing", f"{idle * 100:.1f} % of a core", ""],
    ]  # fmt: skip
    table(f"{ACTIVE:,} functions that run at {WORKERS} workers", ["", "", "target"], rows)
