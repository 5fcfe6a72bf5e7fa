"""Draws a sequence diagram as SVG, readable in light and dark: lanes of processes, arrows and notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape


class Lane(NamedTuple):
    key: str
    title: str


class Picture(NamedTuple):
    """The parts of a picture that do not depend on the trace."""

    title: str
    processes: Sequence[tuple[str, Sequence[Lane]]]
    caption: str

    @property
    def lanes(self) -> list[Lane]:
        return [lane for _, lanes in self.processes for lane in lanes]


class Arrow(NamedTuple):
    source: str
    target: str
    text: str
    is_answer: bool = False


class Note(NamedTuple):
    lane: str
    modules: tuple[str, ...]


Row = Arrow | Note


FIRST, GAP, MARGIN = 190, 124, 78  # between the caller and its neighbour; between lanes; at the sides
TOP, ARROW, LINE, PADDING = 112, 27, 13, 7  # rows begin below the heads; heights
NOTE_WIDTH, LETTERS = 114, 17
STYLE = """
text { font: 12px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 }
.process { font-size: 11px; fill: #59636e }
.head { font-weight: 600 }
.label { font-size: 11px }
.module { font: 10.5px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.caption { font-size: 11px; fill: #59636e }
.page { fill: #ffffff }
.band { fill: #f6f8fa; stroke: #d1d9e0 }
.box { fill: #ffffff; stroke: #59636e }
.note { fill: #ddf4ff; stroke: #54aeff }
.back { fill: #ffffff; opacity: .85 }
.life { stroke: #afb8c1; stroke-dasharray: 2 4 }
.call { stroke: #0969da; stroke-width: 1.4; fill: none }
.answer { stroke: #1a7f37; stroke-width: 1.4; stroke-dasharray: 5 3; fill: none }
.tip { fill: #0969da }
.tip-answer { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.process, .caption { fill: #9198a1 }
.page { fill: #0d1117 }
.band { fill: #151b23; stroke: #3d444d }
.box { fill: #0d1117; stroke: #9198a1 }
.note { fill: #121d2f; stroke: #1f6feb }
.back { fill: #151b23 }
.life { stroke: #656c76 }
.call { stroke: #4493f8 }
.answer { stroke: #3fb950 }
.tip { fill: #4493f8 }
.tip-answer { fill: #3fb950 }
}
"""


def svg(picture: Picture, rows: Sequence[Row]) -> str:
    places = _places(picture)
    width = max(places.values()) + MARGIN
    body, bottom = _body(rows, places)
    caption = _wrapped(
        f"{picture.caption} A module is named where it is entered first. Blue arrows are calls, green ones "
        "answers; calls of the kernel are not drawn as arrows. "
        "Drawn by tools/draw_start.py.", width // 6,
    )  # fmt: skip
    height = bottom + 18 + 15 * len(caption)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{escape(picture.title)}">',
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
        _text(width // 2, 26, picture.title, "title"),
        *_heads(picture, places, bottom),
        *body,
        *(_text(16, bottom + 18 + 15 * n, line, "caption", "start") for n, line in enumerate(caption)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _places(picture: Picture) -> dict[str, int]:
    """The middle of each lane."""
    places: dict[str, int] = {}
    for lane in picture.lanes:
        last = max(places.values(), default=0)
        places[lane.key] = MARGIN if not places else last + (FIRST if len(places) == 1 else GAP)
    return places


def _heads(picture: Picture, places: dict[str, int], bottom: int) -> list[str]:
    found: list[str] = []
    for name, lanes in picture.processes:
        left, right = places[lanes[0].key] - 60, places[lanes[-1].key] + 60
        found.append(
            f'<rect class="band" x="{left}" y="42" width="{right - left}" height="{bottom - 44}" rx="6"/>'
        )
        found.append(_text((left + right) // 2, 58, name, "process"))
        for lane in lanes:
            x = places[lane.key]
            found.append(f'<path class="life" d="M{x} 94V{bottom - 8}"/>')
            found.append(f'<rect class="box" x="{x - 48}" y="68" width="96" height="26" rx="4"/>')
            found.append(_text(x, 85, lane.title, "head"))
    return found


def _body(rows: Sequence[Row], places: dict[str, int]) -> tuple[list[str], int]:
    """The drawn rows, and where they end. Notes of different lanes stand beside each other."""
    found: list[str] = []
    y, beside = TOP, {}
    for row in rows:
        if isinstance(row, Arrow):
            y, beside = y + max(beside.values(), default=0), {}
            found += _arrow(row, places, y)
            y += ARROW
            continue
        if row.lane in beside:
            y, beside = y + max(beside.values()), {}
        drawn, beside[row.lane] = _note(row, places[row.lane], y)
        found += drawn
    return found, y + max(beside.values(), default=0) + 8


def _note(note: Note, x: int, y: int) -> tuple[list[str], int]:
    lines = _wrapped(" ".join(note.modules), LETTERS)
    high = LINE * len(lines) + PADDING
    box = f'x="{x - NOTE_WIDTH // 2}" y="{y - 8}" width="{NOTE_WIDTH}" height="{high}"'
    texts = [_text(x, y + 4 + LINE * n, line, "module") for n, line in enumerate(lines)]
    return [f'<rect class="note" {box} rx="3"/>', *texts], high + 4


def _arrow(arrow: Arrow, places: dict[str, int], y: int) -> list[str]:
    start, end = places[arrow.source], places[arrow.target]
    kind, tip = ("answer", "tip-answer") if arrow.is_answer else ("call", "tip")
    step = 8 if end > start else -8
    line = y + 12
    text = arrow.text
    middle = (start + end) // 2
    return [
        f'<rect class="back" x="{middle - 3 * len(text)}" y="{y - 3}" width="{6 * len(text)}" height="12"/>',
        _text(middle, y + 7, text, "label"),
        f'<path class="{kind}" d="M{start} {line}H{end - step}"/>',
        f'<path class="{tip}" d="M{end} {line}l{-step} -4v8z"/>',
    ]


def _wrapped(text: str, letters: int) -> list[str]:
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if len(longer) > letters and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def _text(x: int, y: int, text: str, kind: str, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
