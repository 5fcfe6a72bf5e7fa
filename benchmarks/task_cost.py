"""CPU of one no-op task, start to told, here and in another checkout, in turn.

    make bench NAMES=task_cost                          only here
    make bench NAMES=task_cost AGAINST=../before        beside another checkout, with the same load

Each sample is a process of its own, and the two checkouts take turns, so that a busy moment hits both. The
figure that counts is the ratio: the median over the pairs. CPU time includes all threads of the process.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from .end_to_end import once
from .measure import folder, table, us

PAIRS = 9
TASKS = 1_000  # of one round; the least of three rounds counts
ROUNDS = 3
HERE = Path(__file__).resolve().parents[1]
SAMPLE = "import benchmarks.task_cost as t; t.print_sample()"


def print_sample() -> None:
    """In a process of its own: seconds of CPU for a task."""
    with folder() as path:
        asyncio.run(once(path / "warm.db", TASKS))
        spent = [asyncio.run(once(path / f"{at}.db", TASKS))[1] for at in range(ROUNDS)]
    print(json.dumps(min(spent) / TASKS))


def sample(checkout: Path) -> float:
    """The package of that checkout under the load of this one."""
    paths = os.pathsep.join((str(checkout / "src"), str(HERE)))
    said = subprocess.run(
        [sys.executable, "-c", SAMPLE],
        env={**os.environ, "PYTHONPATH": paths},
        cwd=HERE,
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(said.stdout)


async def run() -> None:
    other = os.environ.get("AGAINST")
    _beside(other) if other else _alone()


def _alone() -> None:
    spent = [sample(HERE) for _ in range(PAIRS)]
    table("CPU of a no-op task", ["", "least", "median"], [["here", *_figures(spent)]])


def _beside(other: str) -> None:
    there = Path(other).resolve()
    pairs = [(sample(there), sample(HERE)) for _ in range(PAIRS)]
    before, after = zip(*pairs, strict=True)
    ratios = [mine / theirs for theirs, mine in pairs]
    table(
        f"CPU of a no-op task, {PAIRS} pairs in turn",
        ["", "least", "median", "ratio (median of pairs)", "ratio (of the least)"],
        [
            [there.name, *_figures(before), "1.000", "1.000"],
            ["here", *_figures(after), f"{statistics.median(ratios):.3f}", f"{min(after) / min(before):.3f}"],
        ],
    )


def _figures(spent: list[float] | tuple[float, ...]) -> tuple[str, str]:
    return us(min(spent)), us(statistics.median(spent))
