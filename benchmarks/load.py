"""Latency over load: submits at a fixed rate, of which each is timed from the moment at which it was due.

So a submit that waits for the ones before it is not forgotten. The rates are parts of the most that the same
run could do."""

from __future__ import annotations

import asyncio
import time

from meantime import Call, Meantime, Thread

from .measure import TABLES, UNLIMITED, folder, p50, table, us, verdict
from .peers.peer_figures import percentile

PARTS = (0.1, 0.25, 0.5, 0.7, 0.85)  # of the most
ROUNDS, SECONDS = 4, 1.0  # of each part: they take turns, so that a slow moment of the disk hits all alike
MOST_TASKS, STARTERS = 6_000, 100


async def noop() -> None:
    return None


async def listening(thread: Thread, over: asyncio.Event) -> None:
    """Takes what it is told, until it is over and something more is told."""
    async for _ in thread.wakeups():
        async with thread.turn(limit=1_000) as turn:
            await turn.ack()
        if over.is_set():
            return


async def most(thread: Thread) -> float:
    """Starts a second, a hundred at once, while they run and are told."""

    async def starter() -> None:
        for _ in range(MOST_TASKS // STARTERS):
            await thread.start(Call(noop))

    began = time.perf_counter()
    await asyncio.gather(*(starter() for _ in range(STARTERS)))
    return MOST_TASKS / (time.perf_counter() - began)


async def at_rate(thread: Thread, rate: float) -> list[float]:
    """Seconds from the moment at which each submit was due until it was durable."""
    taken: list[float] = []
    loop = asyncio.get_running_loop()
    began = loop.time()

    async def one(due: float) -> None:
        await thread.start(Call(noop))
        taken.append(loop.time() - due)

    async with asyncio.TaskGroup() as group:
        for number in range(int(rate * SECONDS)):
            due = began + number / rate
            if (wait := due - loop.time()) > 0:
                await asyncio.sleep(wait)
            group.create_task(one(due))
    return taken


async def run() -> None:
    with folder() as path:
        async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
            thread, over = mt.thread("bench"), asyncio.Event()
            talking = asyncio.create_task(listening(thread, over))
            limit = await most(thread)
            times: dict[float, list[float]] = {part: [] for part in PARTS}
            for _ in range(ROUNDS):
                for part, taken in times.items():
                    taken += await at_rate(thread, limit * part)
            over.set()
            await thread.start(Call(noop))
            await talking
    rows = [
        {
            "part": part,
            "rate": limit * part,
            "p50_us": p50(taken) * 1e6,
            "p99_us": percentile(taken, 99) * 1e6,
        }
        for part, taken in times.items()
    ]
    TABLES["load"] = rows
    table(
        f"Durable submits at a part of the most ({limit:,.0f} a second), from when each was due",
        ["part", "a second", "p50", "p99", "p99 of p50", "target"],
        [
            [f"{row['part']:.0%}", f"{row['rate']:,.0f}", us(row["p50_us"] / 1e6), us(row["p99_us"] / 1e6),
             f"{row['p99_us'] / row['p50_us']:.1f}×",
             verdict(row["p99_us"] / row["p50_us"], 3) if row["part"] == 0.5 else ""]
            for row in rows
        ],
    )  # fmt: skip
