"""Which process of which user is at the other end of a unix socket, as the kernel says."""

from __future__ import annotations

import contextlib
import socket
import struct
from typing import Any


def credentials(connected: Any) -> tuple[int | None, int | None]:
    """Its process and user id; None for what this system does not say."""
    with contextlib.suppress(OSError, AttributeError):  # not Linux
        size = struct.calcsize("3i")
        found = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        pid, uid, _ = struct.unpack("3i", found)
        return pid or None, uid  # 0: a process that our namespace does not see
    return None, None
