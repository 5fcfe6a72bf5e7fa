"""A terminal that somebody types into. Output that comes in between removes the typed line, and puts it back
afterwards.

The terminal sends every key and shows none by itself (signals stay as they are): only so can we know what is
in the line. It is put back as it was at the end, whatever the end is.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
from collections.abc import AsyncGenerator
from typing import Any, TextIO

from meantime.kernel.ids import display
from meantime.kernel.model import Task
from meantime.surfaces.terminal.task_format import room

from .demo_screen import YOU, DemoScreen
from .demo_texts import MEANWHILE
from .line_editor import END, LineEditor

PATIENCE = 15.0  # seconds without a key, after which a half-typed line holds up nothing
BACK = "\r\x1b[K"


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


class Terminal(DemoScreen):
    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        self._keyboard = sys.stdin.fileno()
        self._before: list[Any] = []
        self._line = LineEditor()
        self._typed: asyncio.Queue[str] = asyncio.Queue()
        self._unanswered = 0  # finished lines
        self._changed = asyncio.Event()  # something was typed, or answered
        self._asks = False  # the prompt stands there

    def invite(self) -> None:
        self.agent(MEANWHILE)
        self.line()

    def failed(self, task: Task) -> None:
        self.agent(f'That one failed. Type "logs {display(task.id)}" to see what it said.')

    async def lines(self) -> AsyncGenerator[str, None]:
        loop = asyncio.get_running_loop()
        loop.add_reader(self._keyboard, self._keys)
        self._asks = True
        try:
            self._prompt()
            while (line := await self._typed.get()) != END:
                yield line
                self._unanswered -= 1
                self._changed.set()
        finally:
            loop.remove_reader(self._keyboard)
            self._asks = False
            self._out.write(BACK)

    async def finished(self) -> None:
        while self._asks and (self._line.text or self._unanswered):
            self._changed.clear()
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._changed.wait()
            except TimeoutError:
                return

    def __enter__(self) -> Terminal:
        self._before = termios.tcgetattr(self._keyboard)
        self._begin()
        asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, self._continue)
        return self

    def __exit__(self, *problem: Any) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGCONT)
        try:
            termios.tcsetattr(self._keyboard, termios.TCSADRAIN, self._before)
            self._out.flush()
        except (OSError, termios.error):
            pass  # the terminal is gone

    def _begin(self) -> None:
        mode = termios.tcgetattr(self._keyboard)
        mode[3] &= ~(termios.ICANON | termios.ECHO)
        termios.tcsetattr(self._keyboard, termios.TCSADRAIN, mode)

    def _continue(self) -> None:
        """After Ctrl+Z and fg: the shell has set the terminal to what it likes."""
        if is_usable():
            self._begin()
            self._prompt()

    def _keys(self) -> None:
        try:
            data = os.read(self._keyboard, 4096)
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            asyncio.get_running_loop().remove_reader(self._keyboard)
            self._typed.put_nowait(END)
            return
        for line in self._line.feed(data):
            if line != END:
                self._out.write(f"{BACK}{self._coloured(YOU + line)}\n")
            self._unanswered += 1
            self._typed.put_nowait(line)
        self._prompt()
        self._changed.set()

    def _put(self, row: str) -> None:
        if self._asks:
            self._out.write(BACK)
        super()._put(row)
        self._prompt()

    def _prompt(self) -> None:
        if self._asks:
            left = (room() or 80) - len(YOU) - 1
            self._out.write(BACK + self._coloured(YOU) + self._line.shown(max(1, left)))
            self._out.flush()
