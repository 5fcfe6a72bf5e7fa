"""One line that is drawn again and again, where there is a terminal for it."""

from __future__ import annotations

import sys

from .task_format import room
from .terminal_text import fitted, on_terminal

WIDTH = 8


def bar(part: float, whole: float) -> str:
    full = round(WIDTH * min(1.0, max(0.0, part / whole))) if whole else 0
    return "▓" * full + "░" * (WIDTH - full)


class ProgressLine:
    """The last line of the screen. On anything but a terminal it draws nothing."""

    def __init__(self) -> None:
        self.alive = on_terminal()
        self._drawn = False

    def draw(self, text: str) -> None:
        if self.alive:
            sys.stdout.write("\r\x1b[K" + fitted(text, (room() or 80) - 1))
            sys.stdout.flush()
            self._drawn = True

    def wipe(self) -> None:
        if self._drawn:
            sys.stdout.write("\r\x1b[K")
            sys.stdout.flush()
            self._drawn = False
