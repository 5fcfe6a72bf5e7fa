"""The same no-op work on peers that a user might pick instead, each with what it promises. They are not
dependencies of ours. Those with a server are the queues that the workers are compared with, and two more."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from . import end_to_end
from .measure import RATIOS, TABLES, Ratio, cpu, folder, table
from .workers.others import PEERS, QUEUES, Peer, crew_of, redis_server

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


PROMISES = {
    "Celery, Redis (AOF)": "Redis writes each second; acks late: run at least once; the result can be read",
    "docket, Redis (AOF)": "Redis writes each second; run at least once; the result can be read",
    "Temporal dev server (SQLite)": "durable; activities run at least once; the result can be read",
    "dramatiq, Redis (AOF)": "Redis writes each second; run at least once; the result can be read",
    "taskiq, Redis stream (AOF)": "Redis writes each second; run at least once; the result can be read",
}
ALSO = [
    Peer("dramatiq, Redis (AOF)", "one process of 8 threads each", PEERS / "python", ["dramatiq_queue.py"],
         ["-m", "dramatiq", "dramatiq_queue", "--processes", "1", "--threads", "8"],
         redis_server, "redis://127.0.0.1:{port}/0", "redis-server"),
    Peer("taskiq, Redis stream (AOF)", "one process each", PEERS / "python", ["taskiq_queue.py"],
         ["-m", "taskiq", "worker", "taskiq_queue:broker", "--workers", "1"],
         redis_server, "redis://127.0.0.1:{port}/0", "redis-server"),
]  # fmt: skip
SERVED = [*(queue for queue in QUEUES if queue.name in PROMISES), *ALSO]
NOOPS = 300  # of a queue with a server: Temporal takes long


def served(peer: Peer) -> tuple[float, float]:
    """Wall and CPU seconds of a task, of all processes: two workers, the client and the server."""
    if not peer.python.exists() or (peer.missing and shutil.which(peer.missing) is None):
        raise ImportError(peer.missing or "make .queues/.ready")
    with crew_of(peer) as crew:
        began, used = time.perf_counter(), crew.cpu()
        answer = crew.ask(do="noops", count=NOOPS)
        if "problem" in answer:
            raise ImportError(str(answer["problem"])[:200])
        return (time.perf_counter() - began) / NOOPS, (crew.cpu() - used) / NOOPS


async def run() -> None:
    with folder() as path:
        ours, used = await end_to_end.once(path / "work.db", TASKS)
        found = [_row("Meantime, SQLite FULL", "durable; run at most once; told exactly once", ours, used)]
        docket = _row("pydocket memory://", "not durable; the result can be read", *await docket_memory())
        in_thread = await asyncio.to_thread(huey_sqlite, path)
        huey = _row("huey SQLite fsync", "durable; taken before it runs; the result can be read", *in_thread)
    found += [docket, huey]
    missing: list[list[object]] = []
    for peer in SERVED:
        try:
            took, spent = await asyncio.to_thread(served, peer)
        except (ImportError, AssertionError, OSError, KeyError) as problem:
            missing.append([peer.name, f"not measured: {problem}"[:200]])
            continue
        found.append(_row(peer.name, PROMISES[peer.name], took * TASKS, spent * TASKS))
    for one in found[1:]:
        # Of CPU time, which a busy machine changes less than the rate.
        RATIOS[f"peers/{one['name']}, CPU in tasks of ours"] = Ratio(
            one["cpu_us"] / found[0]["cpu_us"], "more"
        )
    TABLES["peers"] = found
    table(
        f"Peers, no-op tasks end to end ({TASKS:,}, or {NOOPS} where there is a server and two workers)",
        ["", "what it promises", "tasks/s", "CPU per task, all processes", "we are faster by"],
        [_cells(one, found[0]["rate"]) for one in found],
    )
    if missing:
        table("Not measured", ["", ""], missing)
    table("Settings", ["", ""], [[peer.name, peer.settings] for peer in SERVED])


def _row(name: str, guarantee: str, took: float, spent: float) -> dict[str, Any]:
    return {"name": name, "guarantee": guarantee, "rate": TASKS / took, "cpu_us": spent / TASKS * 1e6}


def _cells(row: dict[str, Any], ours: float) -> list[object]:
    rate, used = row["rate"], row["cpu_us"]
    return [row["name"], row["guarantee"], f"{rate:,.0f}", f"{used:,.0f} µs", f"{ours / rate:.1f}×"]
