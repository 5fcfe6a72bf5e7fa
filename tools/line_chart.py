"""Curves over a logarithmic or linear axis as SVG: each has its own dashes, and its name at its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

from chart_style import WIDTH, drawing

HEIGHT, TOP, BOTTOM, LEFT, RIGHT = 320, 50, 46, 80, 190  # pixels
DASHES = ("", "8 4", "2 4", "10 3 2 3", "4 2", "14 4", "1 3", "6 2 2 2")


class Curve(NamedTuple):
    name: str
    points: Sequence[tuple[float, float]]


class Axis(NamedTuple):
    name: str
    ticks: Sequence[tuple[float, str]]  # where, and what is written there
    logarithmic: bool = False

    def part(self, value: float) -> float:
        """Where a value is, from 0 at the first tick to 1 at the last."""
        low, high = self.ticks[0][0], self.ticks[-1][0]
        if self.logarithmic:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)


def line_chart(title: str, across: Axis, up: Axis, curves: Sequence[Curve]) -> str:
    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * across.part(value)

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * up.part(value)

    lines: list[str] = []
    for value, text in up.ticks:
        lines += [
            f'<path class="axis" d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}"/>',
            f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{escape(text)}</text>',
        ]
    for value, text in across.ticks:
        place = f'x="{x(value):.1f}" y="{HEIGHT - BOTTOM + 18}"'
        lines.append(f'<text {place} text-anchor="middle">{escape(text)}</text>')
    lines += [
        f'<text x="{LEFT}" y="{TOP - 10}">{escape(up.name)}</text>',
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 8}" text-anchor="end">{escape(across.name)}</text>',
    ]
    ends = _apart([y(curve.points[-1][1]) for curve in curves])
    for curve, dashes, end in zip(curves, DASHES, ends, strict=False):
        way = "L".join(f"{x(at):.1f} {y(value):.1f}" for at, value in curve.points)
        lines += [
            f'<path class="curve" stroke-dasharray="{dashes}" d="M{way}"/>',
            f'<text x="{x(curve.points[-1][0]) + 8:.1f}" y="{end + 4:.1f}">{escape(curve.name)}</text>',
        ]
    return drawing(title, HEIGHT, lines)


def _apart(places: Sequence[float], least: float = 15.0) -> list[float]:
    """The same places, moved down where two names would be written over each other."""
    found = list(places)
    order = sorted(range(len(found)), key=lambda at: found[at])
    for above, below in pairwise(order):
        found[below] = max(found[below], found[above] + least)
    return found
