"""Draws the way of one start, from the call until its notice is acknowledged, from traced runs.

python tools/draw_start.py            draws docs/pictures/start_embedded.svg, start_link.svg, start_http.svg
                                      and start_mcp.svg
python tools/draw_start.py embedded   draws one of them

How a trace becomes a picture. Rooms are lanes. A call from one lane into another is an arrow, drawn once
between two requests of the caller; neighbouring arrows between the same lanes are one. A module is named in
its lane where it is entered first. Calls of the kernel are not drawn as arrows, because every package makes
many. A room without a lane (ports, the clock) belongs to its caller. Over the link the first request is drawn
whole; each later one is one arrow.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from call_trace import Call, room_of
from sequence_svg import Arrow, Lane, Note, Picture, Row, svg
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
        "Both processes are traced, the shim is not. Only the first request is drawn whole.",
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
        "meantime mcp and the daemon are traced; the agent, the MCP SDK and the shim are not. "
        "Only the first request is drawn whole.",
    ),
}  # fmt: skip


# -- from a trace to rows


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
    """The name of a function; a class is called by its own."""
    name = name.removesuffix(".__init__")
    return name.rpartition(".")[2].strip("_")


def _label(call: Call, lane: str) -> str:
    """A surface is called back through a listener: its function alone would say little."""
    said = _plain(call.name)
    is_listener = lane == SURFACE and call.caller is not None and call.how == "call"
    return f"{module_name(call.file)}: {said}" if is_listener else said


def picture_file(way: str) -> Path:
    return PICTURES / f"start_{way}.svg"


def main(ways: Sequence[str]) -> None:
    unknown = [way for way in ways if way not in WAYS]
    if unknown:
        raise SystemExit(f"{unknown[0]!r} is not a way to start. Use: {', '.join(WAYS)}.")
    PICTURES.mkdir(exist_ok=True)
    for way in ways or WAYS:
        picture = PLAN[way]
        picture_file(way).write_text(svg(picture, rows_of(WAYS[way](), picture)), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
