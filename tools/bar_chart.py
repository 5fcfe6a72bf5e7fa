"""A bar chart as SVG: light and dark by the reader's own setting, and readable without colour."""

from __future__ import annotations

import math
from html import escape
from typing import NamedTuple

from chart_style import WIDTH, drawing

LABEL, VALUE = 270, 110  # pixels: of the names on the left, of the figures on the right
ROW, BAR, TOP = 30, 16, 44


class Bar(NamedTuple):
    name: str
    value: float
    shown: str
    is_ours: bool = False  # a full bar; the others are hatched


def bar_chart(title: str, bars: list[Bar], *, logarithmic: bool = False) -> str:
    """Each bar has its name and its figure beside it; the longest fills the space. Bars begin at nought.
    In a logarithmic chart they begin at the power of ten below the shortest; each power has a line."""
    height = TOP + ROW * len(bars) + 10
    most = max(bar.value for bar in bars)
    least = 10.0 ** math.floor(math.log10(min(bar.value for bar in bars))) if logarithmic else 0.0
    space = WIDTH - LABEL - VALUE

    def length(value: float) -> float:
        return space * (math.log10(value / least) / math.log10(most / least) if logarithmic else value / most)

    lines: list[str] = []
    for at, bar in enumerate(bars):
        top = TOP + ROW * at
        width = max(1.0, length(bar.value))
        lines += [
            f'<text x="{LABEL - 10}" y="{top + 13}" text-anchor="end">{escape(bar.name)}</text>',
            f'<rect class="{"bar ours" if bar.is_ours else "bar"}" x="{LABEL}" y="{top}" width="{width:.1f}"'
            f' height="{BAR}"/>',
            f'<text x="{LABEL + width + 8:.1f}" y="{top + 13}">{escape(bar.shown)}</text>',
        ]
    bottom = TOP + ROW * len(bars)
    tens = [0.0]
    if logarithmic:
        tens = [length(least * 10.0**power) for power in range(math.ceil(math.log10(most / least)))]
    lines += [f'<path class="axis" d="M{LABEL + at:.1f} {TOP - 8}V{bottom - 6}"/>' for at in tens]
    return drawing(title, height, lines)
