"""A flame graph as SVG: each frame is as wide as its part of the whole, under the frame that called it.

A browser shows the name and the figure of a frame under the pointer, even where its name does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from chart_style import WIDTH, drawing

ROW, TOP, EDGE = 18, 40, 10  # pixels
LETTER = 6.3  # pixels of one, in the text of a frame
NARROW = 0.4  # pixels: below it a frame is not drawn


class Frame:
    def __init__(self, name: str) -> None:
        self.name, self.value = name, 0.0
        self.called: dict[str, Frame] = {}


class Box(NamedTuple):
    name: str
    value: float
    depth: int
    left: float
    width: float


def tree_of(stacks: Sequence[tuple[Sequence[str], float]]) -> Frame:
    root = Frame("all")
    for stack, value in stacks:
        root.value += value
        frame = root
        for name in stack:
            frame = frame.called.setdefault(name, Frame(name))
            frame.value += value
    return root


def boxes(frame: Frame, left: float, scale: float, depth: int = 0) -> list[Box]:
    """The widest first, at each level."""
    found = [Box(frame.name, frame.value, depth, left, frame.value * scale)]
    for called in sorted(frame.called.values(), key=lambda one: (-one.value, one.name)):
        if called.value * scale >= NARROW:
            found += boxes(called, left, scale, depth + 1)
        left += called.value * scale
    return found


def flame_graph(title: str, stacks: Sequence[tuple[Sequence[str], float]], unit: str) -> str:
    root = tree_of(stacks)
    drawn = boxes(root, EDGE, (WIDTH - 2 * EDGE) / root.value)
    lines = [_drawn(box, root.value, unit) for box in drawn]
    return drawing(title, TOP + ROW * (1 + max(box.depth for box in drawn)) + EDGE, lines)


def _drawn(box: Box, whole: float, unit: str) -> str:
    top = TOP + ROW * box.depth
    said = f"{box.name}: {box.value:.1f} {unit}, {box.value / whole:.1%}"
    fits = int((box.width - 6) / LETTER)
    short = box.name.rpartition(":")[2] or box.name
    shown = short if len(short) <= fits else f"{short[: fits - 1]}…" if fits > 3 else ""
    place = f'class="small" x="{box.left + 3:.1f}" y="{top + 13}"'
    text = f"<text {place}>{escape(shown)}</text>" if shown else ""
    return (
        f'<g><title>{escape(said)}</title><rect class="frame{" deep" if box.depth % 2 else ""}"'
        f' x="{box.left:.1f}" y="{top}" width="{box.width:.1f}" height="{ROW - 1}"/>{text}</g>'
    )
