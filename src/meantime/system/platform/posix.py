"""The operations of this package with what macOS, the BSDs and Linux share, and with psutil.

docs/guides/platforms.md says what is weaker here than on Linux.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    import psutil
except ModuleNotFoundError as missing:
    what = "The POSIX path of Meantime needs psutil, which is not installed: pip install psutil"
    raise ModuleNotFoundError(what, name=missing.name) from None

from . import macos
from .linux import Stat

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, TimerHandle

IS_MAC = sys.platform == "darwin"
LONGEST_SOCKET = 103  # bytes: macOS has room for 104 with the NUL
MOST_FILES = 65_536  # descriptors that are closed at most, where the limit is higher
LOOK = 0.05  # seconds between two looks at a process whose end is waited for
LONGEST_NAMED = 4096  # bytes of a lock's file that are read
UNIT = 1000  # start times are counted in milliseconds

USED_CALLS = "psutil, process groups and sessions; weaker than Linux: docs/guides/platforms.md"
NEEDED_SYSTEM = "Meantime needs macOS, a BSD or Linux, with psutil."
KNOWS_TCP_PEERS = False
KNOWS_PEERS = IS_MAC


def sync_file(fd: int) -> None:
    if IS_MAC:
        macos.sync_file(fd)
    else:
        os.fsync(fd)


sync_data = sync_file


def boot() -> str:
    """The time at which the machine was started, hashed: all systems say it. A clock that is set afterwards
    may change it, and that looks like a restart. macOS has an id of its own."""
    session = macos.boot_session() if IS_MAC else ""
    return session or hashlib.sha256(f"boot {psutil.boot_time():.0f}".encode()).hexdigest()[:32]


def started(process: psutil.Process) -> int:
    return round(process.create_time() * UNIT)


def is_zombie(process: psutil.Process) -> bool:
    """With more than one thread, only the first one has ended: the others still hold its files and locks.
    A killed process is in that state for a moment."""
    return process.status() == psutil.STATUS_ZOMBIE and process.num_threads() < 2


def stat(pid: int) -> Stat | None:
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            state = "Z" if is_zombie(process) else "R"
            return Stat(process.name(), state, process.ppid(), started(process))
    except (psutil.Error, OSError, ValueError):
        return None


def program(pid: int) -> str:
    try:
        return psutil.Process(pid).exe().removesuffix(" (deleted)")
    except (psutil.Error, OSError, ValueError):
        return ""


def command_line(pid: int) -> bytes:
    try:
        words = psutil.Process(pid).cmdline()
    except (psutil.Error, OSError, ValueError):
        return b""
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def environments() -> Iterator[tuple[int, bytes]]:
    for pid in psutil.pids():
        text = environment(pid)
        if text is not None:
            yield pid, text


def environment(pid: int) -> bytes | None:
    """None for a process that is gone, or another user's."""
    try:
        found = psutil.Process(pid).environ()
    except (psutil.Error, OSError, ValueError):
        return None
    return b"".join(f"{name}={value}\0".encode("utf-8", "surrogateescape") for name, value in found.items())


def writes_into(pid: int, path: str | Path) -> bool:
    return _has_open(pid, path)


def lock_holder(path: str | Path) -> int:
    """No call that all systems have names the holder, and to try the lock would turn a daemon away that
    begins at that moment. So its file names it, and the process has to have that file open: one that is gone
    has not, nor has another process with its pid."""
    import json

    try:
        pid = json.loads(Path(path).read_bytes()[:LONGEST_NAMED])["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return pid if isinstance(pid, int) and pid > 0 and _has_open(pid, path) else 0


def _has_open(pid: int, path: str | Path) -> bool:
    try:
        return any(os.path.samefile(file.path, path) for file in psutil.Process(pid).open_files())
    except (psutil.Error, OSError, ValueError):
        return False


class ProcessHandle:
    """A pid with its start. Between the look and the signal lies a moment in which the pid could, in theory,
    be given to another process."""

    def __init__(self, pid: int) -> None:
        found = stat(pid)
        if found is None:
            raise ProcessLookupError(f"there is no process {pid}")
        self._pid = pid
        self._started = found.started
        self._loop: AbstractEventLoop | None = None
        self._alarm: TimerHandle | None = None

    def _is_there(self) -> bool:
        found = stat(self._pid)
        return found is not None and found.started == self._started and found.state != "Z"

    def send(self, number: int) -> None:
        if not self._is_there():
            raise ProcessLookupError(f"process {self._pid} has ended")
        os.kill(self._pid, signal.Signals(number))

    def has_ended(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._is_there():
            if time.monotonic() > until:
                return False
            time.sleep(LOOK)
        return True

    def on_exit(self, loop: AbstractEventLoop, call: Callable[[], object]) -> None:
        """Looks now and then."""
        self._loop = loop
        self._alarm = loop.call_later(LOOK, self._look, call)

    def _look(self, call: Callable[[], object]) -> None:
        if self._loop is None:
            return
        if self._is_there():
            self._alarm = self._loop.call_later(LOOK, self._look, call)
        else:
            call()

    def close(self) -> None:
        self._loop = None
        if self._alarm is not None:
            self._alarm.cancel()


def preallocate(fd: int, size: int) -> None:
    """Written, with bytes that no file system leaves out."""
    rest = memoryview(os.urandom(size))
    at = 0
    while at < size:
        at += os.pwrite(fd, rest[at:], at)


def close_files(kept: int) -> None:
    most = min(os.sysconf("SC_OPEN_MAX"), MOST_FILES)
    os.closerange(3, kept)
    os.closerange(max(3, kept + 1), most)


def short_socket_path(folder: int, name: str) -> str:
    return ""


def names_long_sockets() -> bool:
    return False


def peer_credentials(connected: Any) -> tuple[int | None, int | None]:
    return macos.peer_credentials(connected) if IS_MAC else (None, None)


def tcp_owner(pairs: set[tuple[tuple[bytes, int], tuple[bytes, int]]]) -> int | None:
    """Only an administrator may look at the connections of others: whoever connects shows a token."""
    return None


def unread_bytes(fd: int) -> int | None:
    return None


def missing_calls() -> list[str]:
    return []


def kernel_name() -> str:
    return " ".join(os.uname()[:3])
