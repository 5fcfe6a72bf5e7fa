"""One fault after the other, each in a folder of its own: made, recovered from, judged."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from .judge import Tally, Verdict
from .strace import Point

T = TypeVar("T")
WORKERS = 3  # on two cores: some of the time is spent waiting for the disk


def new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="meantime-faults-"))


def side_by_side(jobs: Iterable[T], do: Callable[[T], object]) -> None:
    with ThreadPoolExecutor(WORKERS) as pool:
        for _ in pool.map(do, jobs):
            pass


def _leave(folder: Path) -> None:
    """Nothing runs on in this folder."""


def trial(
    tally: Tally,
    what: str,
    make: Callable[[Path], int],
    recover: Callable[[Path], Verdict],
    tidy: Callable[[Path], None] = _leave,
) -> bool:
    """`make` says how many faults it made. True where all is well; else the folder is kept, and named."""
    folder = new_folder()
    where = f"{what}, files in {folder}"
    clean = False
    try:
        faults = make(folder)
        verdict = recover(folder)
        tally.add(verdict, where, faults)
        clean = verdict.clean
    except Exception as problem:
        tally.broke(f"{type(problem).__name__}: {problem}", where)
    finally:
        tidy(folder)
    if clean:
        shutil.rmtree(folder)
    return clean


def sample(points: list[Point], count: int, rng: random.Random) -> list[Point]:
    """An equal share for every kind of call, then the rest from all; spread over the whole story."""
    kinds: dict[str, list[Point]] = {}
    for point in points:
        kinds.setdefault(point.syscall, []).append(point)
    share = max(1, count // (2 * len(kinds)))
    chosen = [point for of_kind in kinds.values() for point in rng.sample(of_kind, min(share, len(of_kind)))]
    left = [point for point in points if point not in chosen]
    return (chosen + rng.sample(left, min(len(left), max(0, count - len(chosen)))))[:count]
