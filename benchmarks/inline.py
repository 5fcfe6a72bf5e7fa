"""A foreground call that ends in time: what it costs over calling the function."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from meantime import Call, Meantime

from .measure import UNLIMITED, folder, p50, table, us, verdict

ROUNDS = 1_000
THRESHOLD = 10.0


async def later() -> int:
    return 1


def now() -> int:
    return 1


async def run() -> None:
    with folder() as path:
        async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
            thread = mt.thread("bench")
            ways: dict[str, Callable[[], Awaitable[object]]] = {
                "async": later,
                "async, called": lambda: thread.call(Call(later), threshold=THRESHOLD),
                "sync": _bare,
                "sync, called": lambda: thread.call(Call(now), threshold=THRESHOLD),
                "sync, asyncio.to_thread": lambda: asyncio.to_thread(now),
            }
            times: dict[str, list[float]] = {name: [] for name in ways}
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    began = time.perf_counter()
                    await way()
                    times[name].append(time.perf_counter() - began)
    rows: list[list[str]] = []
    for name, taken in times.items():
        kind, _, how = name.partition(", ")
        over = p50(taken) - p50(times[kind])
        judged = verdict(over * 1e6, 200) if how == "called" else ""
        rows.append([f"{kind} function, {how or 'bare'}", us(p50(taken)), us(over) if how else "", judged])
    table(
        f"thread.call that ends in time (p50 of {ROUNDS:,})", ["", "time", "over bare", "target (µs)"], rows
    )


async def _bare() -> int:
    return now()
