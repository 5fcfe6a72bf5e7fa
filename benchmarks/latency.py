"""One at a time: a durable submit, and an ending that wakes a waiting turn, beside a bare commit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator

from meantime import Call, Meantime
from meantime.thread import Thread

from .measure import RATIOS, TABLES, UNLIMITED, Bare, Ratio, folder, p50, ratio, table, us, verdict

ROUNDS = 400
GROWN = "the same, in a WAL that is written over"


async def run() -> None:
    with folder() as path:
        bare, grown = Bare(path / "bare.db"), Bare(path / "grown.db", grown=True)
        async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
            thread = mt.thread("bench")
            submits, wakes, bares, best = [], [], [], []
            for _ in range(ROUNDS):  # interleaved, so that a slow moment of the disk hits all alike
                bares.append(bare.once())
                best.append(grown.once())
                submit, wake = await _one(thread)
                submits.append(submit)
                wakes.append(wake)
        bare.close()
        grown.close()
    base = p50(bares)
    TABLES["latency"] = [{"name": "bare INSERT + COMMIT, FULL", "us": base * 1e6, "bare": True}]
    TABLES["latency"].append({"name": GROWN, "us": p50(best) * 1e6, "bare": True})
    rows = [["bare INSERT + COMMIT, FULL", us(base), "1.00×", ""]]
    rows.append([GROWN, us(p50(best)), ratio(p50(best), base), ""])
    for name, times in (("durable submit", submits), ("ending → waiting turn woken", wakes)):
        value = p50(times)
        TABLES["latency"].append({"name": name, "us": value * 1e6})
        RATIOS[f"latency/{name}, of a bare commit"] = Ratio(value / base)
        rows.append([name, us(value), ratio(value, base), verdict(value / base, 1.6)])
    table("One at a time (p50)", ["", "time", "ratio", "target"], rows)


async def _one(thread: Thread) -> tuple[float, float]:
    gate = asyncio.Event()
    ended = 0.0

    async def work() -> None:
        nonlocal ended
        await gate.wait()
        ended = time.perf_counter()

    began = time.perf_counter()
    await thread.start(Call(work))
    submit = time.perf_counter() - began
    wakeups = thread.wakeups()
    woken = asyncio.ensure_future(anext(wakeups))
    await asyncio.sleep(0)
    gate.set()
    await woken
    wake = time.perf_counter() - ended
    assert isinstance(wakeups, AsyncGenerator)
    await wakeups.aclose()
    async with thread.turn() as turn:
        await turn.ack()
    return submit, wake
