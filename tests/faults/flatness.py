"""Whether what a daemon holds stays flat: the slope of a line through its samples, after the warm-up.

The growth of a measure is that slope times the whole time of the soak. It is flat where the growth, less
twice its standard error, is at most SHARE of its mean, or at most a floor for what is too small to matter.
Memory, descriptors and threads begin anew with every life of a daemon, so each life is fitted around its own
mean, without its own warm-up, and all lives share one slope. Disk and WAL go on over lives.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any, NamedTuple

SHARE = 0.10  # of the mean, over the whole soak
LEAST = 8  # samples from which a line is drawn
WAL_MOST = 32 << 20  # bytes: the writer begins it anew far below that


class Sample(NamedTuple):
    at: float  # seconds of load since the soak began, over all its parts
    life: int  # of the daemon
    age: float  # seconds since that life began
    rss: int  # bytes
    descriptors: int
    threads: int
    wal: int  # bytes
    disk: int  # bytes of the home, without what its conversations are allowed


class Measure(NamedTuple):
    floor: float
    by_life: bool


MEASURES = {
    "rss": Measure(6 << 20, True),
    "descriptors": Measure(6, True),
    "threads": Measure(3, True),
    "wal": Measure(8 << 20, False),
    "disk": Measure(8 << 20, False),
}


class Flatness(NamedTuple):
    mean: float
    most: float
    growth: float  # over the whole soak, by the line
    error: float  # of that, by how far the samples lie from the line
    allowed: float
    samples: int
    flat: bool


def flatness(
    samples: Sequence[Sample], seconds: float, warm_up: float, slack: float = 1.0
) -> dict[str, Flatness]:
    """`seconds`: the length of the soak; `warm_up`: seconds at its beginning, and at that of every life;
    `slack`: times the floors."""
    return {name: _judged(name, samples, seconds, warm_up, slack) for name in MEASURES}


def _judged(name: str, samples: Sequence[Sample], seconds: float, warm_up: float, slack: float) -> Flatness:
    measure = MEASURES[name]
    warm = [one for one in samples if one.at >= warm_up and (one.age >= warm_up or not measure.by_life)]
    points = [(one.life if measure.by_life else 0, one.at, float(getattr(one, name))) for one in warm]
    if len(points) < LEAST:
        return Flatness(0, 0, 0, 0, 0, len(points), False)
    values = [value for _, _, value in points]
    growth, error = (one * seconds for one in _slope(points))
    allowed = max(measure.floor * slack, SHARE * fmean(values))
    flat = growth - 2 * error <= allowed and (name != "wal" or max(values) <= WAL_MOST)
    return Flatness(fmean(values), max(values), growth, error, allowed, len(points), flat)


def _slope(points: Iterable[tuple[int, float, float]]) -> tuple[float, float]:
    """Least squares, each life around its own means; and the standard error."""
    moved = list[tuple[float, float]]()
    lives = 0
    for _, group in groupby(points, key=lambda point: point[0]):
        life = list(group)
        at, value = fmean(point[1] for point in life), fmean(point[2] for point in life)
        moved += [(point[1] - at, point[2] - value) for point in life]
        lives += 1
    below = sum(at * at for at, _ in moved)
    if not below:
        return 0.0, 0.0
    slope = sum(at * value for at, value in moved) / below
    left = sum((value - slope * at) ** 2 for at, value in moved)
    return slope, math.sqrt(left / max(1, len(moved) - lives - 1) / below)


def told(found: dict[str, Flatness]) -> dict[str, Any]:
    """For a report."""
    return {
        name: {
            key: round(value, 1) if isinstance(value, float) else value
            for key, value in one._asdict().items()
        }
        for name, one in found.items()
    }
