"""Commands that wait at a FIFO until a test lets them go on. A FIFO wakes its reader without a poll."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from tests.waiting import LIMIT, until


class Gate:
    """A FIFO of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)

    @property
    def wait(self) -> str:
        """For a shell: ends when the gate is opened."""
        return f"read line < {self.path}"

    def open(self) -> None:
        open_gate(self.path)


def open_gate(path: Path, text: str = "\n", limit: float = LIMIT) -> None:
    """Lets a command go on, as soon as it reads here; AssertionError where it does not come.

    A plain open() for writing waits for ever where nobody reads, as when the command was never started.
    """
    with until(lambda: _entered(path), f"a command waits at {path}", limit=limit) as gate:
        gate.write(text)


def _entered(path: Path) -> TextIO | None:
    try:
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "w")
    except OSError:  # ENXIO: nobody reads yet
        return None
