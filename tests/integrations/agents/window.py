"""A program on a terminal: what it draws is rendered, as a person would see it, and can be waited for."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyte
from tests.waiting import LIMIT, pause, until

TYPIST = 0.2  # seconds between two keys; Gemini CLI takes less than 0.03 for a paste
TRIES = 6  # to type a line
LINES, COLUMNS = 50, 200
CLEAR_LINE = "\x15"


class Window:
    """A program with a terminal of its own. Every wait has a limit.

    A thread reads what the program draws, even while nobody looks: a terminal that is not read blocks the
    program. Questions of the program to its terminal (where is the cursor?) are answered.
    """

    def __init__(self, words: list[str | Path], environ: Mapping[str, str], cwd: Path) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.program = subprocess.Popen(
            words, env={**environ, "TERM": "xterm-256color"}, cwd=cwd, stdin=theirs, stdout=theirs,
            stderr=theirs, start_new_session=True, preexec_fn=_own_terminal,
        )  # fmt: skip
        os.close(theirs)
        self._screen = _Screen(self._ours)
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def text(self) -> str:
        """The screen as it is now."""
        with self._lock:
            return "\n".join(line.rstrip() for line in self._screen.display).strip()

    def until(self, looks: str | Callable[[str], Any], limit: float = LIMIT) -> None:
        """Waits until the screen shows this pattern, or looks as asked."""
        right = looks if callable(looks) else re.compile(looks).search

        def is_shown() -> bool:
            if right(self.text):
                return True
            state = self.program.poll()
            if state is not None:
                raise ChildProcessError(f"The program has ended with {state}. Its screen:\n{self.text}")
            return False

        until(is_shown, f"the screen shows {looks!r}", lambda: self.text, limit=limit)

    def type(self, text: str) -> None:
        """Types a line and sends it. The key is pressed a moment after the text is on the screen: together,
        a program takes them for something pasted. One that has just started may drop what is typed."""
        before = self.text.count(text)
        for _ in range(TRIES):
            self.press(CLEAR_LINE + text)
            with contextlib.suppress(AssertionError):
                self.until(lambda shown: shown.count(text) > before, LIMIT / TRIES)
                break
        else:
            raise AssertionError(f"{text!r} was typed, and is not on this screen:\n{self.text}")
        pause(TYPIST, "a key after a text is not pasted with it")
        self.press("\r")

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def kill(self) -> None:
        """kill -9 for the program's process group. Hooks and commands in groups of their own go on."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.program.pid, signal.SIGKILL)
        self.program.wait(LIMIT)

    def close(self) -> None:
        """Ends all that was started on this terminal."""
        self.kill()
        for pid in _session(self.program.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._reader.join(LIMIT)
        os.close(self._ours)

    def _read(self) -> None:
        stream = pyte.ByteStream(self._screen)
        while True:
            try:
                data = os.read(self._ours, 65_536)
            except OSError:  # nobody has the terminal any more
                return
            if not data:
                return
            with self._lock:
                stream.feed(data)


class _Screen(pyte.Screen):
    """A sequence that pyte does not know in this form is left out, and nothing that comes after it."""

    def __init__(self, terminal: int) -> None:
        super().__init__(COLUMNS, LINES)
        self._terminal = terminal
        for event in pyte.Stream.events:
            setattr(self, event, _tolerant(getattr(self, event)))

    def write_process_input(self, data: str) -> None:
        os.write(self._terminal, data.encode())


def _tolerant(draw: Callable[..., None]) -> Callable[..., None]:
    def drawn(*given: Any, **private: Any) -> None:
        with contextlib.suppress(TypeError, ValueError, IndexError, KeyError):
            draw(*given, **private)

    return drawn


def _session(id: int) -> list[int]:
    """The processes whose session was begun by this process."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state = (path / "stat").read_text().rpartition(")")[2].split()
            if int(state[3]) == id:
                found.append(int(path.name))
    return found


def _own_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
