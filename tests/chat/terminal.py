"""A terminal that somebody sits at: pyte draws it, so a test reads what a person would see."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyte
from tests.waiting import until

MEANTIME = [sys.executable, "-m", "meantime.app.main"]
KEYS = {"ctrl-b": "\x02", "ctrl-c": "\x03", "ctrl-d": "\x04", "tab": "\t", "up": "\x1b[A", "enter": "\r"}


class Terminal:
    """A program on a terminal of its own. `text` is everything that it shows, scrollback included."""

    def __init__(self, program: list[str], environ: dict[str, str], cwd: Path, *, columns: int = 100) -> None:
        self._near, far = pty.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        self.screen = pyte.HistoryScreen(columns, 30, history=10_000, ratio=0.01)
        self.screen.write_process_input = lambda data: self.type(data)  # it is asked where its cursor is
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.mode = termios.tcgetattr(far)
        self.process = subprocess.Popen(
            program, env=environ, cwd=cwd, stdin=far, stdout=far, stderr=far, start_new_session=True,
            preexec_fn=_own_terminal,
        )  # fmt: skip
        self.far = far

    @property
    def text(self) -> str:
        above = ["".join(row[x].data for x in range(self.screen.columns)) for row in self.screen.history.top]
        return "\n".join(row.rstrip() for row in (*above, *self.screen.display)).rstrip()

    @property
    def rows(self) -> list[str]:
        return self.text.split("\n")

    def read(self) -> None:
        """All that it has written until now."""
        while select.select([self._near], [], [], 0)[0]:
            try:
                data = os.read(self._near, 65_536)
            except OSError:  # it has left its terminal
                return
            self.raw += data
            self._stream.feed(data)

    def type(self, text: str) -> None:
        os.write(self._near, text.encode())

    def say(self, line: str) -> None:
        """A line, and Enter. It is typed when the prompt is there to take it."""
        self.type(line)
        self.until(lambda: line[-60:] in self.text.replace("\n  ", ""))
        self.type("\r")

    def press(self, key: str) -> None:
        self.type(KEYS[key])

    def until(self, fits: Callable[[], object], what: str = "the terminal shows it") -> None:
        def is_so() -> bool:
            has_ended = self.process.poll() is not None
            self.read()
            found = bool(fits())
            assert found or not has_ended, f"it has ended before this: {what}\n{self.text}"
            return found

        until(is_so, what, there=lambda: self.text)

    def sees(self, *texts: str) -> None:
        for text in texts:
            self.until(lambda text=text: text in self.text, f"the terminal shows {text!r}")

    def ready(self) -> Terminal:
        """The prompt is there, and the toolbar below it."""
        self.sees("/help", " running · ")
        return self

    def end(self) -> int:
        """Its exit code, with all that it showed read."""

        def has_ended() -> bool:
            self.read()  # one that nobody reads waits
            return self.process.poll() is not None

        until(has_ended, "it ends", there=lambda: self.text)
        self.read()
        return self.process.returncode

    def modes_are_back(self) -> bool:
        return termios.tcgetattr(self.far)[:4] == self.mode[:4]

    def hang_up(self) -> None:
        """The terminal goes away, as when its window is closed."""
        os.close(self.far)
        os.close(self._near)
        self.far = self._near = -1

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for end in (self._near, self.far):
            if end != -1:
                os.close(end)
        self._near = self.far = -1


def _own_terminal() -> Any:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
