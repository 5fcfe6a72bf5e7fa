"""The disk: bytes of a task and of a notice, and how long commits wait for the ledger's own upkeep.

Submits come one after the other; each is a commit with a sync. Meanwhile the ledger does nothing else,
empties its WAL as it always does, deletes old history, or has a reader that stays. The longest submit is
compared with the p99 of those beside nothing. All take turns: a slow moment of the disk hits all alike.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path

from msgspec.structs import replace

from meantime import Call, Meantime, current
from meantime.kernel.event_notices import NoticeRate
from meantime.kernel.limits import Retention
from meantime.runtime.runtime import Runtime
from meantime.stores.sqlite import writer

from .history import fill
from .measure import RATIOS, TABLES, UNLIMITED, Bare, Ratio, folder, p50, table, us, verdict

TASKS, NOTICES = 2_000, 2_000
HISTORY = 20_000  # ended tasks that are deleted meanwhile
KEPT = 100
OFTEN = NoticeRate(seconds=0.0, per_minute=1_000_000)
SUBMITS = 300  # of each way in one round
ROUNDS = 5
ENDLESS = 1 << 40  # bytes of a WAL
PAUSE_TARGET = 3.0  # times the p99 of a commit
ALONE = "nothing else"
Beside = Callable[[Meantime, Path], AbstractAsyncContextManager[None]]


async def noop() -> None:
    return None


async def run() -> None:
    tasks, notices, bare = await _sizes()
    rows = [
        ["a no-op task, told and acknowledged", f"{tasks:,.0f}", f"{tasks / bare:.2f}×"],
        ["a notice before the end", f"{notices:,.0f}", f"{notices / bare:.2f}×"],
    ]
    table("Bytes in the ledger", ["", "each", "of a bare row of 300 bytes"], rows)
    times = await _pauses()
    alone = times[ALONE]
    table(
        f"Pauses ({ROUNDS * SUBMITS:,} submits of each)",
        ["submits beside", "p50", "p99", "longest", "of p99 alone", "target"],
        [_pause(name, taken, _p99(alone)) for name, taken in times.items()],
    )
    RATIOS["disk/bytes of a task, of a bare row"] = Ratio(tasks / bare)
    RATIOS["disk/bytes of a notice, of a bare row"] = Ratio(notices / bare)
    for name, taken in times.items():  # the slowest of them are shown, and vary too much to be watched
        if taken is not alone:
            RATIOS[f"disk/submit beside {name}, p50 of that beside {ALONE}"] = Ratio(p50(taken) / p50(alone))
    TABLES["disk"] = [{"name": "task", "bytes": tasks}, {"name": "notice before the end", "bytes": notices}]
    TABLES["disk"] += [
        {"name": name, "us": p50(taken) * 1e6, "p99_us": _p99(taken) * 1e6, "longest_us": max(taken) * 1e6}
        for name, taken in times.items()
    ]


def _pause(name: str, taken: list[float], p99: float) -> list[str]:
    longest = max(taken) / p99
    mark = "" if name == ALONE else verdict(longest, PAUSE_TARGET)
    return [name, us(p50(taken)), us(_p99(taken)), us(max(taken)), f"{longest:.2f}×", mark]


# -- bytes


async def _sizes() -> tuple[float, float, float]:
    """Bytes of a task, of a notice and of a row of a bare table."""
    with folder() as path:
        sizes: list[int] = []
        for tasks, notices in ((0, 0), (TASKS, 0), (0, NOTICES)):
            file = path / f"{tasks}-{notices}.db"
            await _filled(file, tasks, notices)
            sizes.append(_used(file))
        rows = Bare(path / "bare.db")
        rows.group("INSERT INTO t VALUES (?, ?)", [(f"t_{at:010}", "x" * 300) for at in range(TASKS)])
        rows.close()
        bare = _used(path / "bare.db")
    empty, with_tasks, with_notices = sizes
    return (with_tasks - empty) / TASKS, (with_notices - empty) / NOTICES, bare / TASKS


def _used(file: Path) -> int:
    """Bytes of the pages in use. Free pages, which are used again, are not counted."""
    with closing(sqlite3.connect(file)) as db:
        names = ("page_size", "page_count", "freelist_count")
        size, pages, free = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return size * (pages - free)


async def _filled(file: Path, tasks: int, notices: int) -> None:
    async with Meantime.open(file, settings=replace(UNLIMITED, notices=OFTEN)) as mt:
        thread = mt.thread("bench")
        for _ in range(tasks // 100):
            await thread.wait(*await asyncio.gather(*(thread.start(Call(noop)) for _ in range(100))))
            async with thread.turn(limit=1_000) as turn:
                await turn.ack()
        for at in range(0, notices, 100):
            await (await thread.start(Call(_telling, at))).wait()
            async with thread.turn(limit=1_000) as turn:
                await turn.ack()


async def _telling(at: int) -> None:
    for number in range(at, at + 100):
        await current().notify(f"This is notice number {number}.")


# -- pauses


async def _pauses() -> dict[str, list[float]]:
    ways: dict[str, Beside] = {
        ALONE: _endless_wal,
        "checkpoints": _nothing,
        "retention": _retention,
        "a reader that stays": _reader,
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, beside in ways.items():
            with folder() as path:
                fill(path / "work.db", HISTORY if beside is _retention else KEPT)
                async with Meantime.open(path / "work.db", settings=UNLIMITED) as mt:
                    thread = mt.thread("bench")
                    async with beside(mt, path / "work.db"):
                        for _ in range(SUBMITS):
                            began = time.perf_counter()
                            await thread.start(Call(noop))
                            times[name].append(time.perf_counter() - began)
    return times


@asynccontextmanager
async def _nothing(mt: Meantime, path: Path) -> AsyncIterator[None]:
    yield


@asynccontextmanager
async def _endless_wal(mt: Meantime, path: Path) -> AsyncIterator[None]:
    idle, full = writer.WAL_IDLE, writer.WAL_FULL
    writer.WAL_IDLE = writer.WAL_FULL = ENDLESS
    try:
        yield
    finally:
        writer.WAL_IDLE, writer.WAL_FULL = idle, full


@asynccontextmanager
async def _retention(mt: Meantime, path: Path) -> AsyncIterator[None]:
    runtime = mt._runtime  # pyright: ignore[reportPrivateUsage]  as its upkeep does, but now
    assert isinstance(runtime, Runtime)
    upkeep = asyncio.create_task(
        runtime.record.store.forget(Retention(history_tasks=KEPT, journal_events=KEPT), time.time())
    )
    try:
        yield
    finally:
        await upkeep


@asynccontextmanager
async def _reader(mt: Meantime, path: Path) -> AsyncIterator[None]:
    """A long read, as of a backup, keeps the WAL from being emptied."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM tasks").fetchone()
        yield


def _p99(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]
