"""Records docs/pictures/demo.svg again: a real run of the demo, as its terminal shows it.

    python tools/record_demo.py

The demo runs on a pseudo-terminal; `tasks` is typed when it has told of two endings. The picture ends before
the lines that show how to use Meantime in a program: the README has those itself.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as XML

import pyte
from pyte import modes

from meantime.app.demo.demo_texts import PLUG_IN

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "pictures" / "demo.svg"
COLUMNS, LINES = 108, 80
LIMIT = 120.0  # seconds for the whole demo
TYPED, AFTER = "tasks\r", "  [2] "  # what is typed, and when
# Makes the terminal its own, as a login does, and becomes the demo.
BECOME = (
    "import fcntl, os, sys, termios;fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
COLOURS = {"red": "#ff7b72", "green": "#7ee787", "brown": "#e3b341", "cyan": "#79c0ff", "default": "#d0d7de"}
WIDE, HIGH, SIZE = 8.4, 20.0, 14  # a cell, and the font in it, in pixels
EDGE, BAR = 18.0, 40.0  # around the text, and the bar above it
STYLE = (
    f"text {{ font: {SIZE}px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; }}"
)
RUN = re.compile(r"\S+(?: \S+)*")  # words with single spaces between: wider gaps are columns


class Run(NamedTuple):
    """Characters of one row that stand together and look alike."""

    column: int
    text: str
    colour: str
    bold: bool


def record() -> pyte.Screen:
    """The screen after the last line of the demo; RuntimeError if the demo fails or takes too long."""
    screen = pyte.Screen(COLUMNS, LINES)
    screen.set_mode(modes.LNM)
    stream = pyte.ByteStream(screen)
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    unset = ("COLUMNS", "LINES", "NO_COLOR", "TMPDIR")
    environ = {name: value for name, value in os.environ.items() if name not in unset}
    demo = subprocess.Popen(
        [sys.executable, "-c", BECOME, sys.executable, "-m", "meantime.app.demo"],
        stdin=far, stdout=far, stderr=far, start_new_session=True, env={**environ, "TERM": "xterm"},
    )  # fmt: skip
    os.close(far)
    try:
        _watch(near, stream, screen)
        code = demo.wait(LIMIT)
    finally:
        demo.kill()
        os.close(near)
    if code:
        raise RuntimeError(f"The demo ended with exit code {code}:\n" + "\n".join(screen.display))
    return screen


def _watch(near: int, stream: pyte.ByteStream, screen: pyte.Screen) -> None:
    """Reads until the demo has closed its terminal, and types once."""
    typed, deadline = False, time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if not select.select([near], [], [], 0.1)[0]:
            continue
        try:
            data = os.read(near, 65_536)
        except OSError:  # EIO: nobody has it open any more
            return
        if not data:
            return
        stream.feed(data)
        if not typed and any(row.startswith(AFTER) for row in screen.display):
            os.write(near, TYPED.encode())
            typed = True
    raise RuntimeError(f"The demo did not end within {LIMIT:.0f} s.")


def rows(screen: pyte.Screen) -> list[list[Run]]:
    """The rows of the picture."""
    shown = [row.rstrip() for row in screen.display]
    last = shown.index(PLUG_IN.splitlines()[0])
    while not shown[last - 1]:
        last -= 1
    prompt = [Run(0, "$ make demo", "default", True)]
    return [prompt, [], *(list(_runs(screen, row)) for row in range(last))]


def _runs(screen: pyte.Screen, row: int) -> Iterator[Run]:
    cells = [screen.buffer[row][column] for column in range(COLUMNS)]
    begin = 0
    for column in range(1, COLUMNS + 1):
        same = column < COLUMNS and _look(cells[column]) == _look(cells[begin])
        if not same:
            text = "".join(cell.data for cell in cells[begin:column])
            for found in RUN.finditer(text):
                yield Run(begin + found.start(), found[0], *_look(cells[begin]))
            begin = column


def _look(cell: pyte.screens.Char) -> tuple[str, bool]:
    return cell.fg, cell.bold


def draw(picture: list[list[Run]]) -> str:
    """The picture as SVG: a window with a text element for each row."""
    width, height = COLUMNS * WIDE + 2 * EDGE, BAR + len(picture) * HIGH + EDGE
    size = {"width": f"{width:g}", "height": f"{height:g}"}
    svg = XML.Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width:g} {height:g}", **size}
    )
    XML.SubElement(svg, "style").text = STYLE
    XML.SubElement(svg, "rect", {**size, "rx": "10", "fill": "#0d1117", "stroke": "#30363d"})
    for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        XML.SubElement(svg, "circle", {"cx": f"{EDGE + 4 + at * 20:g}", "cy": "20", "r": "6", "fill": colour})
    for at, row in enumerate(picture):
        if row:
            _draw_row(svg, BAR + at * HIGH + SIZE, row)
    XML.indent(svg)
    return XML.tostring(svg, "unicode") + "\n"


def _draw_row(svg: XML.Element, y: float, row: list[Run]) -> None:
    text = XML.SubElement(svg, "text", {"y": f"{y:g}"})
    for run in row:
        look = {"fill": COLOURS[run.colour], **({"font-weight": "bold"} if run.bold else {})}
        place = {"x": f"{EDGE + run.column * WIDE:g}", "textLength": f"{len(run.text) * WIDE:g}"}
        XML.SubElement(text, "tspan", {**place, **look}).text = run.text


def text_of(svg: str) -> list[str]:
    """The rows of a picture as text, each with single spaces."""
    found = XML.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")
    return [" ".join(part for run in row for part in (run.text or "").split()) for row in found]


if __name__ == "__main__":
    PICTURE.write_text(draw(rows(record())), "utf-8")
