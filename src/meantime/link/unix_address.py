"""Addresses of Unix sockets: a path of any length, where the system can name one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

from meantime.kernel.errors import InvalidInput
from meantime.system.platform import LONGEST_SOCKET, short_socket_path


@contextlib.contextmanager
def address(path: Path) -> Generator[str]:
    """A path that is too long for the kernel is named through its open folder."""
    whole = os.fspath(path)
    if len(os.fsencode(whole)) <= LONGEST_SOCKET:
        yield whole
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        short = short_socket_path(folder, path.name)
        if not short or len(os.fsencode(short)) > LONGEST_SOCKET:
            raise InvalidInput(
                f"{path} is too long for a socket.", hint=f"Name a path of at most {LONGEST_SOCKET} bytes."
            )
        yield short
    finally:
        os.close(folder)
