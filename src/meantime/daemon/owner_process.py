"""The server of a home. The kernel says it: who holds the ledger's lock, and who listens on the socket.

No pid from a file is trusted: the process that wrote it may be gone, and the number somebody else's.
Standard library only.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from pathlib import Path
from typing import NamedTuple

from meantime.system import platform

from .daemon_autostart import PAUSE, answers
from .home import Home, reach

PATIENCE = 60.0  # seconds for another daemon that has the ledger to answer
READY = "ready"  # what a new leader tells the one who started it
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
    pid = platform.lock_holder(f"{ledger}.lock")
    return OwnerProcess(pid, _command(pid)) if pid else None


def listener(home: Home, wait: float = 5.0) -> int:
    """The process behind the socket, by what the kernel noted when it began to listen; 0 for none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as talk:
        talk.settimeout(wait)
        try:
            reach(talk, home.http_socket)
            pid, user = platform.peer_credentials(talk)
        except OSError:
            return 0
    if not platform.KNOWS_PEERS:  # the owner of the ledger listens, if anybody does
        found = owner(home)
        return found.pid if found is not None else 0
    return pid or 0 if user == os.getuid() else 0


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
        handle = platform.ProcessHandle(pid)
    except ProcessLookupError:
        return True
    try:
        found = owner(home)  # only now is the pid known to be the one that we have in hand
        if found is None or found.pid != pid:
            return True
        handle.send(number)
        return handle.has_ended(wait)
    except ProcessLookupError:
        return True
    finally:
        handle.close()


def _command(pid: int) -> str:
    text = platform.command_line(pid).replace(b"\0", b" ").decode("utf-8", "replace")
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())  # in one line
