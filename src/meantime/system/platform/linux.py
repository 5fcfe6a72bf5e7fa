"""The operations of this package as Linux has them. Loads nothing but `os`: see `__init__.py`."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import Any

BOOT_ID = "/proc/sys/kernel/random/boot_id"
LOCKS = "/proc/locks"
TCP_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
OWN_FILES = "/proc/self/fd"  # where a folder that is open has a short name
LONGEST_SOCKET = 107  # bytes that the kernel takes for the path of a socket
USED_CALLS = "/proc, pidfd"
NEEDED_SYSTEM = "Meantime needs Linux 5.4 or newer with /proc."
KNOWS_TCP_PEERS = True  # the user of a connection over loopback
KNOWS_PEERS = True  # the user at the other end of a Unix socket


def sync_file(fd: int) -> None:
    os.fsync(fd)


def sync_data(fd: int) -> None:
    os.fdatasync(fd)


def boot() -> str:
    """The kernel's own id of this boot."""
    try:
        with open(BOOT_ID) as file:
            return file.read().strip()
    except OSError:
        return ""


class Stat:
    """One process, as the kernel described it a moment ago."""

    __slots__ = ("name", "parent", "started", "state")

    def __init__(self, name: str, state: str, parent: int, started: int) -> None:
        self.name = name
        self.state = state
        self.parent = parent
        self.started = started  # in ticks since the boot


# Places in the fields of /proc/<pid>/stat from the third on, as `split_stat` gives them.
STATE, PARENT, GROUP, FLAGS, THREADS, STARTED = 0, 1, 2, 6, 17, 19


def split_stat(text: bytes) -> tuple[bytes, list[bytes]]:
    """The name of the process, which may hold anything, and the fields after it."""
    end = text.rindex(b")")
    return text[text.index(b"(") + 1 : end], text[end + 2 :].split()


def is_gone(fields: list[bytes]) -> bool:
    """A zombie is gone but for its name; unless only its first thread has ended, and others go on."""
    return fields[STATE] in (b"Z", b"X") and int(fields[THREADS]) < 2


def stat(pid: int) -> Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            name, fields = split_stat(file.read())
    except OSError:
        return None
    state = "Z" if is_gone(fields) else "R"
    return Stat(name.decode(errors="replace"), state, int(fields[PARENT]), int(fields[STARTED]))


def program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")  # it has updated itself
    except OSError:
        return ""


def command_line(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def environments() -> Iterator[tuple[int, bytes]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as file:
                    yield int(entry), file.read()
            except OSError:
                continue


def writes_into(pid: int, path: str | Path) -> bool:
    return _is_same(f"/proc/{pid}/fd/1", path)


# -- locks


def lock_holder(path: str | Path) -> int:
    """The kernel's table of locks says it, and numbers of files repeat between disks: so the files that the
    process really holds are looked at."""
    try:
        number = os.stat(path).st_ino
        with open(LOCKS) as file:
            locks = file.read().splitlines()
    except OSError:
        return 0
    for line in locks:
        words = line.split()
        # "1: FLOCK ADVISORY WRITE 3028 fe:00:2146376 0 EOF"; who waits has an arrow in second place
        if words[1] != "FLOCK" or words[5].rpartition(":")[2] != str(number):
            continue
        pid = int(words[4])
        if _has_open(pid, path):
            return pid
    return 0


def _has_open(pid: int, path: str | Path) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        return any(_is_same(f"{folder}/{name}", path) for name in os.listdir(folder))
    except OSError:
        return False


def _is_same(one: str, path: str | Path) -> bool:
    try:
        return os.path.samefile(one, path)
    except OSError:
        return False


# -- one process


class ProcessHandle:
    """A descriptor of the process: nothing that is done with it meets a successor with the same pid."""

    def __init__(self, pid: int) -> None:
        self._fd = os.pidfd_open(pid)
        self._loop: AbstractEventLoop | None = None

    def send(self, number: int) -> None:
        import signal

        signal.pidfd_send_signal(self._fd, number)

    def has_ended(self, seconds: float) -> bool:
        import select
        import time

        until = time.monotonic() + seconds
        looking = select.poll()
        looking.register(self._fd, select.POLLIN)
        while (left := until - time.monotonic()) > 0:
            if looking.poll(left * 1000):
                return True
        return False

    def on_exit(self, loop: AbstractEventLoop, call: Callable[[], object]) -> None:
        self._loop = loop
        loop.add_reader(self._fd, call)

    def close(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._fd)
        os.close(self._fd)


# -- files and sockets


def preallocate(fd: int, size: int) -> None:
    os.posix_fallocate(fd, 0, size)


def close_files(kept: int) -> None:
    for name in os.listdir(OWN_FILES):
        if int(name) > 2 and int(name) != kept:
            try:
                os.close(int(name))
            except OSError:
                continue  # the listing's own is closed already


def short_socket_path(folder: int, name: str) -> str:
    """Through the open folder."""
    return f"{OWN_FILES}/{folder}/{name}" if os.path.isdir(f"{OWN_FILES}/{folder}") else ""


def names_long_sockets() -> bool:
    return os.path.isdir(OWN_FILES)


def peer_credentials(connected: Any) -> tuple[int | None, int | None]:
    import socket
    import struct

    try:
        found = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    except (OSError, AttributeError):
        return None, None
    pid, uid, _ = struct.unpack("3i", found)
    return pid or None, uid  # 0: a process that our namespace does not see


def tcp_owner(pairs: set[tuple[tuple[bytes, int], tuple[bytes, int]]]) -> int | None:
    """The kernel's table of connections says it."""
    wanted = {(_written(*peer), _written(*own)) for peer, own in pairs}
    try:
        for table in TCP_TABLES:
            with open(table) as file:
                lines = file.read().splitlines()[1:]
            for line in lines:
                fields = line.split()
                # Without an inode nobody holds the socket any more, and its owner reads as root.
                if (fields[1], fields[2]) in wanted and fields[9] != "0":
                    return int(fields[7])
    except (OSError, ValueError, IndexError):
        return None
    return None


def _written(packed: bytes, port: int) -> str:
    """Words of 32 bits, each in the machine's own byte order, as the kernel prints them."""
    from sys import byteorder

    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, byteorder):08X}" for word in words) + f":{port:04X}"


def unread_bytes(fd: int) -> int | None:
    import fcntl
    import stat as modes
    import sys
    import termios

    mode = os.fstat(fd).st_mode
    asked = termios.TIOCOUTQ if modes.S_ISSOCK(mode) else termios.FIONREAD if modes.S_ISFIFO(mode) else None
    if asked is None:
        return None
    try:
        return int.from_bytes(fcntl.ioctl(fd, asked, bytes(4)), sys.byteorder)
    except OSError:
        return None


# -- for `meantime doctor`


def missing_calls() -> list[str]:
    lacks: list[str] = []
    if not os.access("/proc/self/stat", os.R_OK) or not os.access(LOCKS, os.R_OK):
        lacks.append("/proc (who owns what)")
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (OSError, AttributeError):
        lacks.append("pidfd (signals that cannot meet a stranger)")
    return lacks


def kernel_name() -> str:
    try:
        with open("/proc/version") as file:
            return file.read(400)
    except OSError:
        return ""
