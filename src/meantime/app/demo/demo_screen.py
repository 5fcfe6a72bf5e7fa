"""Where the demo's lines go: nowhere, one after another, or around the line that is being typed."""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
from collections.abc import AsyncGenerator, Iterable
from typing import Any, TextIO

from meantime.kernel.model import Task
from meantime.surfaces.terminal.task_format import LOOKS, coloured, room
from meantime.surfaces.terminal.terminal_text import fitted

BOLD = "1"
MARKED = 28  # characters within which a row has its glyph
COLOURS = dict(LOOKS.values())  # by glyph
AGENT = "agent > "
YOU = "  you > "
INDENT = " " * len(AGENT)


class DemoScreen:
    """Plain lines, for pipes, files and CI. Nobody types here: the demo asks by itself, and says so."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._heard = 0
        self._asking = asyncio.Event()

    # -- what is shown

    def line(self, text: str = "", *, cut: bool = False, whole: bool = False) -> None:
        """As it is where it goes to a file; on a terminal folded, cut, or whole, so that it can be copied."""
        width = room()
        if whole or not width:
            self._put(text)
        elif cut:
            self._put(fitted(text, width))
        else:
            hang = " " * min(len(INDENT), width // 4)
            folded = textwrap.wrap(text, max(width, 20), subsequent_indent=hang, drop_whitespace=True)
            for row in folded or [""]:
                self._put(row)

    def table(self, rows: Iterable[str], indent: str = "  ") -> None:
        for row in rows:
            self.line(indent + row, cut=True)

    def agent(self, first: str, *more: str) -> None:
        self.line(AGENT + first, cut=bool(more))
        self.table(more, INDENT)

    def notice(self, text: str) -> None:
        self.line(f"  {text}")
        self._heard += 1
        if self._heard == 2:
            self._asking.set()

    def invite(self) -> None:
        """Tells somebody who can type that they can."""

    def failed(self, task: Task) -> None:
        """Tells somebody who can type how to see more."""

    async def lines(self) -> AsyncGenerator[str, None]:
        """The lines that the person types. Here one question that is a part of the script, then silence."""
        await self._asking.wait()
        self.line(f"{YOU}tasks          (a part of the script: nobody can type here)")
        yield "tasks"
        await asyncio.get_running_loop().create_future()

    async def finished(self) -> None:
        """Returns when nobody is in the middle of a line."""

    # -- from opening to closing

    def __enter__(self) -> DemoScreen:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._out.flush()

    def _put(self, row: str) -> None:
        self._out.write(self._coloured(row) + "\n")
        self._out.flush()

    def _coloured(self, row: str) -> str:
        if row.startswith((AGENT, YOU)):
            return coloured(row[: len(AGENT)], BOLD) + row[len(AGENT) :]
        glyph = next((glyph for glyph in COLOURS if f" {glyph} " in row[:MARKED]), None)
        return row.replace(glyph, coloured(glyph, COLOURS[glyph]), 1) if glyph else row


class Silent(DemoScreen):
    """For --json: the object at the end is all there is."""

    def _put(self, row: str) -> None:
        pass


def open_screen(*, headless: bool, silent: bool) -> DemoScreen:
    if silent:
        return Silent(sys.stdout)
    if headless or not is_usable():
        return DemoScreen(sys.stdout)
    from .interactive_screen import InteractiveScreen

    return InteractiveScreen(sys.stdout)


def is_usable() -> bool:
    """Somebody looks on and types, the terminal can erase a line, and it is ours: not in the background."""
    streams: list[TextIO | None] = [sys.stdin, sys.stdout]  # None: it was closed for us
    if not all(stream and stream.isatty() for stream in streams):
        return False
    if os.environ.get("TERM", "dumb") == "dumb":
        return False
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except OSError:
        return False
