"""The demo's screen where somebody types: the line stays at the bottom, everything else goes above it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator
from contextlib import ExitStack, aclosing
from typing import Any, TextIO

from meantime.kernel.ids import display
from meantime.kernel.model import Task
from meantime.surfaces.terminal.errors import CliError
from meantime.surfaces.terminal.terminal_text import plain

from .demo_screen import YOU, DemoScreen, is_usable
from .demo_texts import MEANWHILE

PATIENCE = 15.0  # seconds without a key, after which a half-typed line holds up nothing
LONGEST = 1_000  # characters of what is typed or pasted at once


class InteractiveScreen(DemoScreen):
    def __init__(self, out: TextIO) -> None:
        super().__init__(out)
        try:  # here, because only this screen needs prompt_toolkit
            from meantime.surfaces.terminal.screen import Screen
        except ModuleNotFoundError as missing:
            what = f"`demo` needs {missing.name}, which is not installed."
            raise CliError(what, "pip install 'meantime[server]', or use --headless") from missing
        self._changed = asyncio.Event()  # a key was pressed, or a line was taken
        self._screen = Screen(self._coloured(YOU), pressed=self._changed.set, erase=True)
        self._asks = False  # the prompt stands there
        self._opened = ExitStack()

    def invite(self) -> None:
        self.agent(MEANWHILE)
        self.line()

    def failed(self, task: Task) -> None:
        self.agent(f'That one failed. Type "logs {display(task.id)}" to see what it said.')

    async def lines(self) -> AsyncGenerator[str, None]:
        self._asks = True
        try:
            async with aclosing(self._screen.lines()) as typed:
                async for text in typed:
                    self._screen.clear_line()
                    for line in text[:LONGEST].splitlines() or [""]:  # several, where they were pasted
                        self._put(YOU + plain(line))
                        yield plain(line)
                    self._changed.set()
        finally:
            self._asks = False
            self._changed.set()

    async def finished(self) -> None:
        while self._asks and not self._screen.is_empty:
            self._changed.clear()
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._changed.wait()
            except TimeoutError:
                return

    def __enter__(self) -> InteractiveScreen:
        loop = asyncio.get_running_loop()
        self._opened.enter_context(self._screen.raw_mode())
        self._opened.callback(loop.remove_signal_handler, signal.SIGCONT)
        loop.add_signal_handler(signal.SIGCONT, self._continue)
        return self

    def __exit__(self, *problem: Any) -> None:
        self._opened.close()

    def _continue(self) -> None:
        if is_usable():
            self._screen.resume()

    def _put(self, row: str) -> None:
        self._screen.put([self._coloured(row)])
