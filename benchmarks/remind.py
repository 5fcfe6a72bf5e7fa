"""Reminders: what one costs beside so many others, how the next one is found, and what waiting costs.

    make bench NAMES=remind

All figures are of one run, so the ratios hold on any machine.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from meantime import Limits, Meantime, Settings
from meantime.app.system_clock import SystemClock
from meantime.runtime.runtime import Runtime

from .measure import cpu, folder, p50, table, us

SIZES = (1_000, 10_000, 100_000)
THREADS = 100
ROUNDS = 200
IDLE = 10.0  # seconds: two rounds of the reconciler
SETTLES = 10  # seconds at most
TOGETHER = (1_000, 10_000)
FAR = 86_400.0  # seconds: nothing of it comes while we measure
SETTINGS = Settings(limits=Limits(reminders=-1, reminders_per_thread=-1))


async def _timed(verb: Callable[[], Awaitable[object]]) -> float:
    times: list[float] = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await verb()
        times.append(time.perf_counter() - began)
    return p50(times)


async def _fill(mt: Meantime, have: int, want: int) -> None:
    for start in range(have, want, 500):
        await asyncio.gather(
            *(
                mt.thread(f"t{n % THREADS}").remind(f"reminder {n}", delay=FAR + n)
                for n in range(start, min(start + 500, want))
            )
        )


async def _idle() -> tuple[str, str]:
    """CPU time, and wake-ups of all threads, in a second in which nothing happens. The log of the ledger is
    copied into it after many writes: that is waited for, and is not a cost of waiting."""
    for _ in range(SETTLES):
        began = cpu()
        await asyncio.sleep(1.0)
        if cpu() - began < 0.001:
            break
    began, woken = cpu(), resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    await asyncio.sleep(IDLE)
    woken = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - woken
    return f"{1e3 * (cpu() - began) / IDLE:.2f} ms", f"{woken / IDLE:.1f}"


async def _measure(path: Path) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    async with Meantime.open(path, settings=SETTINGS) as mt:
        assert isinstance(mt._runtime, Runtime)
        store, boot = mt._runtime.store, SystemClock().uptime().boot
        thread, have = mt.thread("measured"), 0
        await asyncio.sleep(0.5)
        rows.append((0, "", "", "", *await _idle()))
        for size in SIZES:
            await _fill(mt, have, size)
            have = size
            create = await _timed(lambda: thread.remind("one more", delay=FAR))
            next_due = await _timed(lambda: store.next_due(boot))
            uptime = SystemClock().uptime()
            due = await _timed(lambda now=uptime: store.due_schedules(time.time(), now, 100))
            rows.append((f"{size:,}", us(create), us(next_due), us(due), *await _idle()))
    return rows


async def _due_together(path: Path, count: int) -> tuple[float, float]:
    """Seconds until all are told, and the longest that the loop was held up meanwhile."""
    async with Meantime.open(path, settings=SETTINGS) as mt:
        assert isinstance(mt._runtime, Runtime)
        at = time.time() + 3.0 + count / 2_000
        for start in range(0, count, 500):
            await asyncio.gather(*(mt.thread("a").remind(f"{n}", at=at) for n in range(start, start + 500)))
        await asyncio.sleep(max(0.0, at - time.time() - 0.01))
        began = last = time.perf_counter()
        longest = 0.0
        while mt._runtime.waking.unread("a") < count:
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
        return time.perf_counter() - began, longest


async def run() -> None:
    with folder() as path:
        rows = await _measure(path / "ledger.db")
        head = ("reminders to come", "create", "next due", "what is due", "CPU of an idle second", "wake-ups")
        table("Reminders beside so many others", head, rows)
        together = [(f"{count:,}", *await _due_together(path / f"{count}.db", count)) for count in TOGETHER]
        table(
            "Due at the same time",
            ("reminders", "all told", "the loop was held up"),
            [(count, f"{all_:.2f} s", f"{1e3 * held:.1f} ms") for count, all_, held in together],
        )
