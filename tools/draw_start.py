"""Draws the way of one start, from the call until its notice is acknowledged, from traced runs.

python tools/draw_start.py            draws docs/pictures/start_embedded.svg, start_link.svg, start_http.svg
                                      and start_mcp.svg
python tools/draw_start.py embedded   draws one of them

How a trace becomes a picture. Rooms are lanes. A call from one lane into another is an arrow, drawn once
between two requests of the caller; neighbouring arrows between the same lanes are one. A module is named in
its lane where it is entered first. Calls of the kernel, which everybody asks, are no arrows. What is not a
lane (ports, the clock) belongs to its caller. Over the link the first request is drawn whole; later ones are
one arrow.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from call_trace import Call, room_of
from traced_starts import CALLER, OWNER, SERVER, WAYS, Mark, Step, Walk

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"

YOU, API, MCP, CLIENT, SURFACE, RUNTIME, KERNEL, STORE, RUNNER, SHIM = (
    "caller", "api", "mcp", "client", "surface", "runtime", "kernel", "store", "runner", "shim",
)  # fmt: skip
OF_OWNER = {
    "surfaces": SURFACE, "link": SURFACE, "toolset": SURFACE, "dialects": SURFACE, "runtime": RUNTIME,
    "kernel": KERNEL, "stores": STORE, "runners": RUNNER, "engines": RUNNER,
}  # fmt: skip
OF_CONNECTED = {"client": CLIENT, "link": CLIENT}
LOOKUPS = frozenset({"now", "runner"})  # these fetch something, and nothing happens


class Lane(NamedTuple):
    key: str
    title: str


class Picture(NamedTuple):
    """What is the same however the trace went."""

    title: str
    processes: Sequence[tuple[str, Sequence[Lane]]]
    caption: str

    @property
    def lanes(self) -> list[Lane]:
        return [lane for _, lanes in self.processes for lane in lanes]


BEHIND = (
    Lane(RUNTIME, "runtime"), Lane(KERNEL, "kernel"), Lane(STORE, "store"), Lane(RUNNER, "runner"),
)  # fmt: skip
BESIDE = ("shim process", (Lane(SHIM, "shim"),))
PLAN = {
    "embedded": Picture(
        "One start in your own process: Meantime.open",
        (("your process", (Lane(YOU, "your code"), Lane(API, "API"), *BEHIND)), BESIDE),
        "The shim is a process of its own and is not traced.",
    ),
    "link": Picture(
        "One start over the link: Meantime.connect",
        (
            ("your process", (Lane(YOU, "your code"), Lane(API, "API"), Lane(CLIENT, "client"))),
            ("the daemon", (Lane(SURFACE, "link's end"), *BEHIND)),
            BESIDE,
        ),
        "Both processes are traced, the shim is not.",
    ),
    "http": Picture(
        "One start over HTTP",
        (
            ("your program", (Lane(YOU, "HTTP client"),)),
            ("the daemon", (Lane(SURFACE, "HTTP door"), *BEHIND)),
            BESIDE,
        ),
        "The daemon is traced; its HTTP server and the shim are not.",
    ),
    "mcp": Picture(
        "One start over MCP",
        (
            ("an agent", (Lane(YOU, "agent"),)),
            ("meantime mcp", (Lane(MCP, "MCP, toolset"), Lane(CLIENT, "client"))),
            ("the daemon", (Lane(SURFACE, "link's end"), *BEHIND)),
            BESIDE,
        ),
        "meantime mcp and the daemon are traced; the agent, the MCP SDK and the shim are not.",
    ),
}  # fmt: skip


# -- from a trace to rows


class Arrow(NamedTuple):
    source: str
    target: str
    text: str
    is_answer: bool = False


class Note(NamedTuple):
    lane: str
    modules: tuple[str, ...]


Row = Arrow | Note


class Drawing:
    def __init__(self, picture: Picture) -> None:
        self._lanes = [lane.key for lane in picture.lanes]
        self._entry = self._lanes[1]
        self.rows: list[Row] = []
        self._drawn: set[Arrow] = set()  # since the caller last asked
        self._named: set[tuple[str, str]] = set()
        self._last: dict[str, tuple[str, int]] = {}  # each path's latest call: its lane, its number
        self._waited: set[str] = set()  # paths
        self._count = 0
        self._crossed = False  # a request has gone over the link, and its answer has come

    def mark(self, mark: Mark) -> None:
        if mark.is_answer:
            self.rows.append(Arrow(self._entry, YOU, mark.text, True))
        else:
            self._drawn = {arrow for arrow in self._drawn if arrow[:2] == (RUNTIME, SURFACE)}  # listeners
            self.rows.append(Arrow(YOU, self._entry, mark.text))

    def step(self, step: Step) -> None:
        call = step.call
        if self._is_of_before(step):
            return
        lane = self._lane(step, call.file, call.caller)
        if call.how == "sends":
            self._sends(lane)
            return
        if "thread" not in call.path:
            self._count += 1
        before, number = self._last.get(call.path, ("", self._count))
        self._last[call.path] = (lane, self._count)
        if before == RUNNER and self._count > number + 1:  # other tasks ran meanwhile: it has waited there
            self._waited.add(call.path)
        source = lane if call.caller is None else self._lane(step, call.caller[0], None)
        if call.how == "outside" and lane == RUNNER and "callback" in call.path:
            self._arrow(Arrow(SHIM, RUNNER, "has ended"))
        elif source != lane and KERNEL not in (source, lane) and _plain(call.name) not in LOOKUPS:
            self._arrow(Arrow(source, lane, _label(call, lane)))
        elif (before, lane) == (RUNNER, RUNTIME) and call.path in self._waited:
            self._arrow(Arrow(RUNNER, RUNTIME, "report", True))
        self._module(lane, module_name(call.file))

    def _sends(self, lane: str) -> None:
        if lane == RUNNER:
            self._arrow(Arrow(RUNNER, SHIM, "order"))
        elif lane == CLIENT:
            self._arrow(Arrow(CLIENT, SURFACE, "request"))
        elif lane == SURFACE and CLIENT in self._lanes:
            self._arrow(Arrow(SURFACE, CLIENT, "answer", True))
            self._crossed = self._crossed or any(row[:2] == (SURFACE, RUNTIME) for row in self.rows)

    def _is_of_before(self, step: Step) -> bool:
        """Whether this is of a task of the daemon itself, which looks after something now and then."""
        call = step.call
        is_new = call.path not in self._last and call.how == "call" and call.caller is not None
        return is_new and call.caller is not None and room_of(call.caller[0]) == "app"

    def _lane(self, step: Step, file: str, caller: tuple[str, str] | None) -> str:
        """A room that is not a lane belongs to its caller."""
        room = room_of(file).partition("/")[0]
        known = OF_OWNER if step.process == OWNER else OF_CONNECTED
        if room in known:
            return known[room]
        if caller is not None:
            return self._lane(step, caller[0], None)
        home = {OWNER: API if API in self._lanes else SURFACE, CALLER: API, SERVER: MCP}[step.process]
        is_beside = room in ("ports", "app") and step.call.path in self._last
        return self._last[step.call.path][0] if is_beside else home

    def _arrow(self, arrow: Arrow) -> None:
        if self._crossed:  # only the first request is drawn whole
            if CLIENT in arrow[:2]:
                return
            if arrow[:2] == (SURFACE, RUNTIME):
                arrow = arrow._replace(source=self._entry)
        if arrow in self._drawn:
            return
        self._drawn.add(arrow)
        last = self.rows[-1] if self.rows else None
        if isinstance(last, Arrow) and last[:2] == arrow[:2] and YOU not in arrow[:2]:
            self.rows[-1] = last._replace(text=f"{last.text}, {arrow.text}")
        else:
            self.rows.append(arrow)

    def _module(self, lane: str, name: str) -> None:
        if (lane, name) in self._named:
            return
        self._named.add((lane, name))
        place = self._open_note(lane)
        if place is None:
            self.rows.append(Note(lane, (name,)))
        else:
            note = self.rows[place]
            assert isinstance(note, Note)
            self.rows[place] = Note(lane, (*note.modules, name))

    def _open_note(self, lane: str) -> int | None:
        """Where the lane's latest note is, unless an arrow has begun or ended there since. The kernel has no
        arrows: it counts as a part of the runtime."""
        about = RUNTIME if lane == KERNEL else lane
        for place in range(len(self.rows) - 1, -1, -1):
            row = self.rows[place]
            if isinstance(row, Note):
                if row.lane == lane:
                    return place
            elif about in row[:2]:
                return None
        return None


def module_name(file: str) -> str:
    """A module as people call it; a package is called by its folder."""
    *folders, name = file.removesuffix(".py").split("/")
    return folders[-1] if name == "__init__" and folders else name


def stages(walk: Walk) -> set[str]:
    """The stages of the runtime that a walk enters. Tasks that ran before it, such as the upkeep, are not a
    part of it."""
    first: dict[str, Call] = {}
    for call in walk.calls:
        first.setdefault(call.path, call)
    before = {path for path, call in first.items() if call.how == "call" and ": task" in path}
    entered = {call.file for call in walk.calls if call.path not in before}
    return {module_name(file) for file in entered if room_of(file) == "runtime"}


def named(picture: str) -> set[str]:
    """The modules that a picture names."""
    texts = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    return {word for text in texts if text.get("class") == "module" for word in (text.text or "").split()}


def rows_of(walk: Walk, picture: Picture) -> list[Row]:
    drawing = Drawing(picture)
    both: list[tuple[int, Step | Mark]] = [(step.call.at, step) for step in walk.steps]
    both += [(mark.at, mark) for mark in walk.marks]
    for _, each in sorted(both, key=lambda pair: pair[0]):
        if isinstance(each, Mark):
            drawing.mark(each)
        else:
            drawing.step(each)
    return drawing.rows


def _plain(name: str) -> str:
    """What is called: a class is called by its name."""
    name = name.removesuffix(".__init__")
    return name.rpartition(".")[2].strip("_")


def _label(call: Call, lane: str) -> str:
    """A surface is called back through a listener: its function alone would say little."""
    said = _plain(call.name)
    is_listener = lane == SURFACE and call.caller is not None and call.how == "call"
    return f"{module_name(call.file)}: {said}" if is_listener else said


# -- from rows to SVG

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
        f"{picture.caption} A module is named where it is entered first; blue: calls, green: answers. "
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


def picture_file(way: str) -> Path:
    return PICTURES / f"start_{way}.svg"


def main(ways: Sequence[str]) -> None:
    unknown = [way for way in ways if way not in WAYS]
    if unknown:
        raise SystemExit(f"There is no way {unknown[0]!r}. There are: {', '.join(WAYS)}.")
    PICTURES.mkdir(exist_ok=True)
    for way in ways or WAYS:
        picture = PLAN[way]
        picture_file(way).write_text(svg(picture, rows_of(WAYS[way](), picture)), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
