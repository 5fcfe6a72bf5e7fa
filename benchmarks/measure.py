"""Clocks, tables and the bare SQLite commit that durable work is compared with."""

from __future__ import annotations

import os
import resource
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from meantime import Limits, Settings, WakeBudget

UNLIMITED = Settings(limits=Limits(per_thread=-1, total=-1), wakes=WakeBudget(rounds=-1))
TICKS = os.sysconf("SC_CLK_TCK")  # of the CPU time in /proc, a second


class Ratio(NamedTuple):
    value: float
    better: Literal["less", "more"] = "less"


RATIOS: dict[str, Ratio] = {}  # of this run, by `benchmark/what`: recorded_run.py compares them
TABLES: dict[str, list[dict[str, Any]]] = {}  # of this run, for docs/reference/benchmarks.md


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def reset_peak() -> None:
    """From now on `peak` is of what comes, not of what was (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most memory, in bytes, that this process had since the last reset."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


@contextmanager
def folder() -> Iterator[Path]:
    """Beside the code, so on a real disk: /tmp may be memory."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent, prefix=".bench-") as path:
        yield Path(path)


class Bare:
    """INSERT and COMMIT with synchronous=FULL, nothing else: what the disk itself costs.

    `grown`: in a WAL that has its size already, and is written over. Its syncs are quicker than those of one
    that still grows, as every WAL does at first."""

    def __init__(self, path: Path, *, grown: bool = False) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("CREATE TABLE t (id TEXT PRIMARY KEY, body TEXT)")
        self._next = 0
        if grown:
            self._db.execute("CREATE TABLE filler AS SELECT zeroblob(4000000) AS bytes")
            self._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()

    def once(self) -> float:
        self._next += 1
        began = time.perf_counter()
        self._db.execute("BEGIN IMMEDIATE")
        self._db.execute("INSERT INTO t VALUES (?, ?)", (f"t_{self._next:010}", "x" * 300))
        self._db.execute("COMMIT")
        return time.perf_counter() - began

    def group(self, statement: str, rows: Sequence[tuple[str, str]]) -> None:
        """The same statement for many rows, and one commit."""
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany(statement, rows)
        self._db.execute("COMMIT")

    def close(self) -> None:
        self._db.close()


def p50(times: Sequence[float]) -> float:
    return statistics.median(times)


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    print(f"\n{title}")
    cells = [list(map(str, row)) for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def us(seconds: float) -> str:
    return f"{seconds * 1e6:,.0f} µs"


def ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.2f}×"


def verdict(value: float, target: float, *, at_most: bool = True) -> str:
    good = value <= target if at_most else value >= target
    return ("met" if good else "MISSED") + f" ({'≤' if at_most else '≥'} {target:g})"
