"""Commands that wait at a FIFO until a test lets them go on. A FIFO wakes its reader without a poll."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

PATIENCE = 60.0  # seconds: the machine may be busy


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


def open_gate(path: Path, text: str = "\n", patience: float = PATIENCE) -> None:
    """Lets a command go on, as soon as it reads here; AssertionError where it does not come.

    A plain open() for writing waits for ever where nobody reads, as when the command was never started.
    """
    until = time.monotonic() + patience
    while True:
        with contextlib.suppress(OSError):  # ENXIO: nobody reads yet
            file = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
            break
        assert time.monotonic() < until, f"nobody has waited at {path} for {patience} seconds"
        time.sleep(0.01)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)
