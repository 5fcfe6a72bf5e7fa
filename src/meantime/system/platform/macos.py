"""The calls that only macOS has. None of this has run on a Mac: docs/guides/platforms.md lists it as
untested."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
from typing import Any

SOL_LOCAL, LOCAL_PEERCRED, LOCAL_PEERPID = 0, 1, 2  # of <sys/un.h>
XUCRED = struct.Struct("=Iihh16I")  # version, uid, number of groups, padding, groups
F_FULLFSYNC = 51


def sync_file(fd: int) -> None:
    """`fsync` leaves the bytes in the drive's own memory; this asks the drive to write them."""
    try:
        fcntl.fcntl(fd, getattr(fcntl, "F_FULLFSYNC", F_FULLFSYNC))
    except OSError:
        os.fsync(fd)  # a file system that cannot, such as one over the network


def peer_credentials(connected: Any) -> tuple[int | None, int | None]:
    try:
        said = connected.getsockopt(SOL_LOCAL, LOCAL_PEERCRED, XUCRED.size)
        uid = XUCRED.unpack(said.ljust(XUCRED.size, b"\0"))[1]
        pid = struct.unpack("=i", connected.getsockopt(SOL_LOCAL, LOCAL_PEERPID, 4))[0]
    except (OSError, struct.error):
        return None, None
    return pid or None, uid


def boot_session() -> str:
    """The kernel's id of this boot, which no clock changes; empty where it does not say."""
    room = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(len(room))
    try:
        failed = ctypes.CDLL(None).sysctlbyname(b"kern.bootsessionuuid", room, ctypes.byref(size), None, 0)
    except (OSError, AttributeError):
        return ""
    return "" if failed else room.value.decode("ascii", "replace").lower()
