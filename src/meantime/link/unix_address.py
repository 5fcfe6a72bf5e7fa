"""Unix sockets: a path of any length, and who is at the other end."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Generator
from pathlib import Path
from typing import Any

from meantime.kernel.errors import InvalidInput

LONGEST = 107  # bytes of an address that the kernel takes


@contextlib.contextmanager
def address(path: Path) -> Generator[str]:
    """A path that is too long for the kernel is named through its open folder."""
    whole = os.fspath(path)
    if len(os.fsencode(whole)) <= LONGEST:
        yield whole
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        short = f"/proc/self/fd/{folder}/{path.name}"
        if len(os.fsencode(short)) > LONGEST or not os.path.isdir(f"/proc/self/fd/{folder}"):
            raise InvalidInput(
                f"{path} is too long for a socket.", hint=f"Name a path of at most {LONGEST} bytes."
            )
        yield short
    finally:
        os.close(folder)


def credentials(connected: Any) -> tuple[int | None, int | None]:
    """The process and the user at the other end, as the kernel says; None for what it does not say."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux
        size = struct.calcsize("3i")
        found = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        pid, uid, _ = struct.unpack("3i", found)
        return pid or None, uid  # 0: a process that our namespace does not see
    return None, None
