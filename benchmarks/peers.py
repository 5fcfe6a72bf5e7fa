"""The same no-op work on peers that a user might pick instead. They are no dependencies of ours."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from . import end_to_end
from .measure import cpu, folder, table, verdict

TASKS = 2_000


async def noop() -> None:
    return None


async def docket_memory() -> tuple[float, float]:
    """pydocket on its memory backend: not durable. Told when its result can be read."""
    from docket import Docket, Worker

    logging.disable(logging.WARNING)
    async with Docket(name="bench", url="memory://") as docket:
        docket.register(noop)
        began, used = time.perf_counter(), cpu()
        worker = Worker(docket, concurrency=100, minimum_check_interval=timedelta(milliseconds=5))
        async with worker:
            for _ in range(TASKS // 100):
                await asyncio.gather(*(docket.add(noop)() for _ in range(100)))
            await worker.run_until_finished()
        return time.perf_counter() - began, cpu() - used


def huey_sqlite(path: Path) -> tuple[float, float]:
    """huey on SQLite with fsync: durable. Told when its result is read back."""
    from huey import SqliteHuey
    from huey.consumer import Consumer

    queue = SqliteHuey(filename=str(path / "huey.db"), fsync=True)

    @queue.task()
    def work() -> int:
        return 1

    logging.disable(logging.WARNING)
    Consumer._set_signal_handlers = lambda self: None  # it runs beside us, not as a process of its own
    consumer = Consumer(queue, workers=4, periodic=False, initial_delay=0.001, max_delay=0.01)
    consumer.start()
    began, used = time.perf_counter(), cpu()
    results: list[Any] = [work() for _ in range(TASKS)]
    for result in results:
        result.get(blocking=True, max_delay=0.01)
    took, spent = time.perf_counter() - began, cpu() - used
    consumer.stop(graceful=True)
    return took, spent


async def run() -> None:
    with folder() as path:
        ours, used = await end_to_end.once(path / "work.db", TASKS)
        rows: list[list[object]] = [
            ["Meantime, SQLite FULL", f"{TASKS / ours:,.0f}", f"{used / TASKS * 1e6:,.0f} µs", "1.0×", ""]
        ]
        peers = (("pydocket memory://", docket_memory, 20.0), ("huey SQLite fsync", huey_sqlite, 5.0))
        for name, peer, target in peers:
            try:
                took, spent = await peer() if peer is docket_memory else await asyncio.to_thread(peer, path)  # type: ignore[arg-type,misc]
            except ImportError as problem:
                rows.append([name, f"not installed: {problem}", "", "", ""])
                continue
            rows.append(
                [
                    name,
                    f"{TASKS / took:,.0f}",
                    f"{spent / TASKS * 1e6:,.0f} µs",
                    f"{took / ours:.1f}×",
                    verdict(took / ours, target, at_most=False),
                ]
            )
    table(
        f"Peers, {TASKS:,} no-op tasks end to end",
        ["", "tasks/s", "CPU per task", "we are faster by", "target"],
        rows,
    )
