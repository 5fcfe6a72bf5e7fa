"""Measures every peer in one run, and makes its tables and ratios."""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..measure import RATIOS, TABLES, Ratio, table, us
from .crew import Peer
from .peer_figures import LONG, RUNNING, WATCH, crashed, measured
from .peer_rows import MEANTIME, MEANTIME_AGAIN, PEERS

CRASHES_AT_ONCE = 3  # they wait most of the time
Row = dict[str, Any]


def run_all() -> None:
    wanted = os.environ.get("ROWS", "").split()
    peers = [peer for peer in PEERS if peer is MEANTIME or not wanted or any(w in peer.name for w in wanted)]
    found: list[Row] = []
    missing: list[list[str]] = []
    for peer in peers:
        found += _measured(peer, missing)
    names = {row["name"] for row in found}
    killed = [*(peer for peer in peers if peer.name in names), MEANTIME_AGAIN]
    with ThreadPoolExecutor(CRASHES_AT_ONCE) as pool:
        outcomes = dict(zip((peer.name for peer in killed), pool.map(_crashed, killed), strict=True))
    for row in found:
        row["crash"] = outcomes[row["name"]]
    again = {"name": MEANTIME_AGAIN.name, "promise": MEANTIME_AGAIN.promise}
    keep(found, [*found, {**again, "crash": outcomes[MEANTIME_AGAIN.name]}], missing)


def _measured(peer: Peer, missing: list[list[str]]) -> list[Row]:
    """Its row, or none and a reason. Without a row of ours there is nothing to compare with."""
    try:
        if not peer.absent:
            return [measured(peer)]
        missing.append([peer.name, peer.absent])
    except (OSError, KeyError, ValueError) as problem:
        if peer is MEANTIME:
            raise
        missing.append([peer.name, f"{problem}"[:300]])
    return []


def _crashed(peer: Peer) -> dict[str, int] | str:
    try:
        return crashed(peer)
    except (OSError, KeyError, ValueError) as problem:
        return f"{problem}"[:300]


def keep(found: Sequence[Row], rows: Sequence[Row], missing: Sequence[Sequence[str]]) -> None:
    """Prints the tables, and keeps the rows and the ratios."""
    ours, others = found[0], found[1:]
    TABLES["peers"] = [*rows, *({"name": name, "missing": why} for name, why in missing)]
    RATIOS.update(ratios_of(ours, others))
    table(
        "The same no-op work on each; Redis, PostgreSQL and Temporal are servers with workers beside them",
        ["", "submit p50", "p99", "of a bare commit", "ending → told", "tasks/s", "CPU per task", "of ours",
         "waiting task"],
        [
            [row["name"], us(row["submit_us"] / 1e6), us(row["submit_p99_us"] / 1e6),
             f"{row['submit_us'] / row['bare_us']:.1f}×",
             us(row["told_us"] / 1e6), f"{row['rate']:,.0f}", us(row["cpu_us"] / 1e6),
             f"{row['cpu_us'] / ours['cpu_us']:.1f}×", f"{row['waiting_bytes'] / 1024:.1f} KB"]
            for row in found
        ],
    )  # fmt: skip
    table(
        f"Everything killed with -9 while {RUNNING} tasks of {LONG:g} s run; then {WATCH:g} s to finish",
        ["", "finished", "run twice", "finished twice", "told", "lost", "promise"],
        [[row["name"], *crash_cells(row["crash"]), row["promise"]] for row in rows],
    )
    if missing:
        table("Not measured", ["", "why"], missing)


def crash_cells(crash: dict[str, int] | str) -> list[str]:
    """A row that failed has its reason in the first cell."""
    if isinstance(crash, str):
        return [f"not played: {crash}", "", "", "", ""]
    return [str(crash[name]) for name in ("finished", "run_twice", "doubled", "told", "lost")]


def ratios_of(ours: Row, others: Sequence[Row]) -> dict[str, Ratio]:
    """Of CPU time, and only the mean of all others: one peer's figure varies by a third from run to run."""
    found: dict[str, Ratio] = {}
    if others:
        mean = statistics.geometric_mean(row["cpu_us"] / ours["cpu_us"] for row in others)
        found["peers/CPU of a task, mean of the others in ours"] = Ratio(mean, "more")
    if isinstance(ours["crash"], dict):
        told = ours["crash"]["told"] / ours["crash"]["tasks"]
        found["peers/told after a kill -9, part of the tasks"] = Ratio(told, "more")
    return found
