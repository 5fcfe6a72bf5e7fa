"""The server of a home. The kernel says it: who holds the ledger's lock, and who listens on the socket.

No pid from a file is trusted: the process that wrote it may be gone, and the number somebody else's.
Standard library only.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import time
from pathlib import Path
from typing import NamedTuple

from .daemon_autostart import PAUSE, answers
from .home import Home, reach

PATIENCE = 60.0  # seconds for another daemon that has the ledger to answer
READY = "ready"  # what a new leader tells the one who started it
LOCKS = Path("/proc/locks")
DAEMON = "meantime.app.daemon"  # in the command line of every daemon


class OwnerProcess(NamedTuple):
    """The process that holds the ledger."""

    pid: int
    command: str  # its command line

    @property
    def is_daemon(self) -> bool:
        return DAEMON in self.command

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command[:200]})"


def owner(home: Home) -> OwnerProcess | None:
    return holder(home.ledger)


def holder(ledger: Path) -> OwnerProcess | None:
    """None where nobody holds it. Only looks: taking the lock to see could turn a daemon away."""
    path = Path(f"{ledger}.lock")
    try:
        number = os.stat(path).st_ino
        locks = LOCKS.read_text().splitlines()
    except OSError:
        return None
    for line in locks:
        words = line.split()
        # "1: FLOCK ADVISORY WRITE 3028 fe:00:2146376 0 EOF"; who waits has an arrow in second place
        if words[1] != "FLOCK" or words[5].rpartition(":")[2] != str(number):
            continue
        pid = int(words[4])
        if _has_open(pid, path):
            return OwnerProcess(pid, _command(pid))
    return None


def listener(home: Home, wait: float = 5.0) -> int:
    """The process behind the socket, by what the kernel noted when it began to listen; 0 for none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.settimeout(wait)
        try:
            reach(talk, home.http_socket)
            noted = talk.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return 0
    pid, user, _ = struct.unpack("3i", noted)
    return pid if user == os.getuid() else 0


def served_by_another(home: Home, wait: float = PATIENCE) -> str | None:
    """None: nobody has the ledger. Empty: a daemon answers for it. Otherwise why it cannot be served."""
    until = time.monotonic() + wait
    while (found := owner(home)) is not None:
        # A process that is being killed loses its command line before its locks: it is gone in a moment.
        if found.command and not found.is_daemon:
            return (
                f"{home.ledger} is owned by {found}, which is not a daemon.\n"
                "Let that process end, or set MEANTIME_HOME to another folder."
            )
        if found.command and answers(home, wait):
            return ""
        if time.monotonic() > until:
            return f"Process {found.pid} has the ledger and does not answer.\nLook into {home.log}."
        time.sleep(PAUSE)
    return None


def terminate(home: Home, pid: int, number: signal.Signals, wait: float) -> bool:
    """True when that process is gone. Nobody else is ever signalled, should it end on its own meanwhile."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        found = owner(home)  # only now is the pid known to be the one that we have in hand
        if found is None or found.pid != pid:
            return True
        signal.pidfd_send_signal(handle, number)
        return _has_ended(handle, wait)
    except ProcessLookupError:
        return True
    finally:
        os.close(handle)


def _has_ended(handle: int, wait: float) -> bool:
    until = time.monotonic() + wait
    looking = select.poll()
    looking.register(handle, select.POLLIN)
    while (left := until - time.monotonic()) > 0:
        if looking.poll(left * 1000):
            return True
    return False


def _has_open(pid: int, path: Path) -> bool:
    """Numbers of files repeat between disks: so we look what the process really holds."""
    folder = f"/proc/{pid}/fd"
    try:
        return any(_is_same(f"{folder}/{name}", path) for name in os.listdir(folder))
    except OSError:
        return False


def _is_same(one: str, path: Path) -> bool:
    try:
        return os.path.samefile(one, path)
    except OSError:
        return False


def _command(pid: int) -> str:
    try:
        said = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ""
    text = said.replace(b"\0", b" ").decode("utf-8", "replace")
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())  # in one line
