"""10,000 async functions running at once: what each costs above a bare asyncio task."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc

from meantime import Call, Meantime

from .measure import UNLIMITED, folder, table, verdict

TASKS = 10_000


async def run() -> None:
    gate = asyncio.Event()

    async def work() -> None:
        await gate.wait()

    bare = await _bare(work)
    gate.set()
    gate = asyncio.Event()
    with folder() as path:
        async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
            thread = mt.thread("bench")
            ours = await _ours(thread, work)
            gate.set()
            while await thread.list(limit=1):
                await thread.wait(timeout=60)
    extra = (ours - bare) / 1024
    rows = [
        ["bare asyncio", f"{bare / 1024:.2f} KB", "", ""],
        ["Meantime", f"{ours / 1024:.2f} KB", f"{extra:.2f} KB", verdict(extra, 3)],
    ]
    table(
        f"Memory of {TASKS:,} functions running at once, each",
        ["", "each", "above bare", "target (KB)"],
        rows,
    )


async def _bare(work: object) -> float:
    before = _start()
    running = [asyncio.create_task(work()) for _ in range(TASKS)]  # type: ignore[operator]
    await asyncio.sleep(0)
    used = _used() - before
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    tracemalloc.stop()
    return used / TASKS


async def _ours(thread: object, work: object) -> float:
    before = _start()
    for _ in range(TASKS // 100):
        await asyncio.gather(*(thread.start(Call(work)) for _ in range(100)))  # type: ignore[attr-defined,arg-type]
    await asyncio.sleep(0)
    used = _used() - before
    tracemalloc.stop()
    return used / TASKS


def _start() -> int:
    gc.collect()
    tracemalloc.start()
    return tracemalloc.get_traced_memory()[0]


def _used() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
