"""A terminal of our own: what a person would see, and a process that believes to be in one."""

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
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

DEADLINE = 60.0
# Makes the terminal its own, as a login does, and becomes the demo: so Ctrl+C is a signal.
BECOME = (
    "import fcntl, os, sys, termios;fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
PIECE = re.compile(r"\x1b\[[0-9;]*([A-Za-z])|[\r\n]|[^\x1b\r\n]+")


class Picture:
    """Rows of text. It knows a carriage return, a new line, and `erase to the end`; colours are dropped."""

    def __init__(self) -> None:
        self.rows = [""]
        self._column = 0
        self.odd: list[str] = []  # sequences that it does not know

    def feed(self, text: str) -> None:
        for piece in PIECE.finditer(text):
            if piece[0] == "\r":
                self._column = 0
            elif piece[0] == "\n":
                self.rows.append("")
                self._column = 0
            elif piece[1] == "K":
                self.rows[-1] = self.rows[-1][: self._column]
            elif piece[1] is None:
                row = self.rows[-1]
                self.rows[-1] = row[: self._column] + piece[0] + row[self._column + len(piece[0]) :]
                self._column += len(piece[0])
            elif piece[1] != "m":
                self.odd.append(piece[0])

    def __str__(self) -> str:
        return "\n".join(self.rows)


class Session:
    """The demo in a terminal. Every read and every key has a deadline."""

    def __init__(self, folder: Path, *options: str, columns: int = 100, **environ: str) -> None:
        self._near, far = pty.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.mode = termios.tcgetattr(far)
        self.terminal = far  # held open, so that its mode can be looked at afterwards
        command = [sys.executable, "-c", BECOME, sys.executable, "-m", "meantime.app.demo", *options]
        settings = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
        self.process = subprocess.Popen(
            command,
            stdin=far,
            stdout=far,
            stderr=far,
            start_new_session=True,
            env={**settings, "TERM": "xterm", "TMPDIR": str(folder), **environ},
        )
        self.picture = Picture()
        self.raw = ""
        self._bytes = b""

    def type(self, text: str) -> None:
        os.write(self._near, text.encode())

    def until(self, fits: Callable[[Session], object]) -> None:
        deadline = time.monotonic() + DEADLINE
        while not fits(self):
            assert time.monotonic() < deadline, f"it did not come:\n{self.picture}"
            self.read()

    def sees(self, text: str) -> None:
        self.until(lambda session: text in str(session.picture))

    def end(self) -> int:
        """Its exit code, with all that it showed read."""
        self.until(lambda session: session.process.poll() is not None)
        while self.read():
            pass
        return self.process.returncode

    def mode_now(self) -> list[Any]:
        return termios.tcgetattr(self.terminal)

    def read(self, wait: float = 0.05) -> bool:
        if not select.select([self._near], [], [], wait)[0]:
            return False
        self._bytes += os.read(self._near, 65_536)
        text = self._bytes.decode(errors="ignore")
        if text.encode() != self._bytes:  # a character that has not come whole
            return True
        self._bytes = b""
        self.raw += text
        self.picture.feed(text)
        return True

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._near)
        os.close(self.terminal)
