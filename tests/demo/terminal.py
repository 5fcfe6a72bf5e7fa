"""The demo on a terminal of its own: what a person would see, and a process that believes to be in one."""

from __future__ import annotations

import os
import sys
import termios
from pathlib import Path
from types import TracebackType
from typing import Any

from chat.terminal import Terminal

DEMO = [sys.executable, "-m", "meantime.app.demo"]


class Session(Terminal):
    def __init__(
        self, folder: Path, *options: str, program: list[str] = DEMO, columns: int = 100, **environ: str
    ) -> None:
        settings = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        environ = {**settings, "TERM": "xterm", "TMPDIR": str(folder), **environ}
        super().__init__([*program, *options], environ, Path.cwd(), columns=columns)

    def mode_now(self) -> list[Any]:
        return termios.tcgetattr(self.far)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
