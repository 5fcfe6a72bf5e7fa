"""Appending to a file of our own: whole, and readable by nobody else."""

from __future__ import annotations

import os
from pathlib import Path


def append(path: Path | str, data: bytes) -> None:
    """Writes all of it at the end; a file that is not there is made. Raises OSError, perhaps half-way."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]
    finally:
        os.close(fd)
