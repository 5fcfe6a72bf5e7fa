"""Where the demo's lines go: nowhere, one after another, or around the line that is being typed."""

from __future__ import annotations

import asyncio
import shutil
import sys
import textwrap
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any, TextIO

from meantime.kernel.ids import display
from meantime.kernel.model import Task

from .layout import shorten

COLOURS = {"✓": "32", "✗": "31", "■": "33", "●": "36", "○": "2"}
AGENT = "agent > "
YOU = "  you > "
INDENT = " " * len(AGENT)


class Screen:
    """Plain lines, for pipes, files and CI. Nobody types here: the demo asks by itself, and says so."""

    def __init__(self, out: TextIO, environ: Mapping[str, str]) -> None:
        self._out = out
        self._wide = out.isatty()
        self._colour = self._wide and not environ.get("NO_COLOR") and environ.get("TERM", "dumb") != "dumb"
        self._heard = 0
        self._asking = asyncio.Event()

    # -- what is shown

    def line(self, text: str = "", *, cut: bool = False, whole: bool = False) -> None:
        """As it is where it goes to a file; on a terminal folded, cut, or whole, so that it can be copied."""
        width = shutil.get_terminal_size().columns if self._wide else 0
        if whole or not width:
            self._put(text)
        elif cut:
            self._put(shorten(text, width))
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
        """What the person says. Here one question that is a part of the script, then silence."""
        await self._asking.wait()
        self.line(f"{YOU}tasks          (a part of the script: nobody can type here)")
        yield "tasks"
        await asyncio.get_running_loop().create_future()

    async def finished(self) -> None:
        """Returns when nobody is in the middle of a line."""

    # -- from opening to closing

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *problem: Any) -> None:
        self._out.flush()

    def _put(self, row: str) -> None:
        self._out.write(self._coloured(row) + "\n")
        self._out.flush()

    def _coloured(self, row: str) -> str:
        if not self._colour:
            return row
        if row.startswith((AGENT, YOU)):
            return f"\x1b[1m{row[: len(AGENT)]}\x1b[0m{row[len(AGENT) :]}"
        found = next((mark for mark in COLOURS if f" {mark} " in row[:24]), None)
        return row.replace(found, f"\x1b[{COLOURS[found]}m{found}\x1b[0m", 1) if found else row


class Silent(Screen):
    """For --json: the object at the end is all there is."""

    def _put(self, row: str) -> None:
        pass


def open_screen(environ: Mapping[str, str], *, headless: bool, silent: bool) -> Screen:
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  an ASCII terminal gets a ? for a mark
    if silent:
        return Silent(sys.stdout, environ)
    from .terminal import Terminal, is_usable

    if not headless and is_usable(environ):
        return Terminal(sys.stdout, environ)
    return Screen(sys.stdout, environ)


def logs_of(task: Task) -> str:
    return f"logs {display(task.id)}"
