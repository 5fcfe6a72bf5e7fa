"""The files around a ledger: its lock, its reserve, its spilled payloads. Private to their user."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import sys
import time
import weakref
from pathlib import Path
from typing import Any

from meantime.kernel.errors import LedgerBusy, LedgerError

_CREATE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Lock:
    """Who owns the ledger. The kernel's flock decides; the text inside only tells people."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self.path = Path(f"{ledger}.lock")
        self._fd = -1
        self.was_clean = True
        self.was_made = False  # a database of ours lay here before
        _locks.add(self)

    def take(self) -> None:
        fd = os.open(self.path, _CREATE, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            owner = _owner(os.read(fd, 4096))
            os.close(fd)
            raise LedgerBusy(
                f"{self._ledger} is owned by {owner}.",
                hint="A ledger has one owner: connect to it with Meantime.connect(…) if it has a link, "
                "stop it, or open another path.",
            ) from None
        text = os.read(fd, 4096)
        self.was_clean = not text or bool(_parse(text).get("clean"))
        self.was_made = bool(_parse(text).get("made"))
        self._fd = fd
        self._write(clean=False)

    def mark_made(self) -> None:
        self.was_made = True
        self._write(clean=False)

    def _write(self, *, clean: bool) -> None:
        text = json.dumps(
            {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "since": time.strftime("%Y-%m-%d %H:%M:%S"),
                "command": " ".join(sys.argv)[:200],
                "clean": clean,
                "made": self.was_made,
            }
        )
        with contextlib.suppress(OSError):  # a full disk does not stop us from owning
            os.pwrite(self._fd, text.encode("utf-8", "replace"), 0)
            os.ftruncate(self._fd, len(text.encode("utf-8", "replace")))

    def give_back(self, *, clean: bool) -> None:
        if self._fd >= 0:
            self._write(clean=clean)
            self.drop()

    def drop(self) -> None:
        """Closes our descriptor only; in a forked child this leaves the parent's lock alone."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _drop_in_child() -> None:
    for lock in list(_locks):
        lock.drop()


os.register_at_fork(after_in_child=_drop_in_child)  # else a forked child would keep a dead owner's lock


def _parse(text: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(text))
    except (ValueError, TypeError):
        return {}


def _owner(text: bytes) -> str:
    owner = _parse(text)
    if not owner:
        return "another process"
    mine = " (this very process)" if owner.get("pid") == os.getpid() else ""
    who = f"process {owner.get('pid')}{mine} on {owner.get('host')}"
    return f"{who} since {owner.get('since')}: {owner.get('command')}"


class Reserve:
    """Some disk kept back, so that endings can still be recorded when the disk is full."""

    SIZE = 1 << 20

    def __init__(self, ledger: Path) -> None:
        self._path = Path(f"{ledger}.reserve")
        self.held = False
        self.spent = False  # the disk was full, and is not known to be better

    def keep(self) -> bool:
        """Tries to lay the reserve (again); False while the disk has no room for it."""
        try:
            fd = os.open(self._path, _CREATE, 0o600)
            try:
                os.posix_fallocate(fd, 0, self.SIZE)
            finally:
                os.close(fd)
        except OSError:
            return False
        self.held, self.spent = True, False
        return True

    def drop(self) -> None:
        """At a clean close: nobody needs it until the next open."""
        self.held = False
        self._path.unlink(missing_ok=True)

    def spend(self) -> bool:
        """Gives the space back to the disk; False if that was done already."""
        held, self.held, self.spent = self.held, False, True
        with contextlib.suppress(OSError):
            self._path.unlink()
        return held


class Spills:
    """Payloads over the limits, one private file each. Names are random: no id ever forms a path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, payload: bytes) -> str:
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self.folder / f"{secrets.token_hex(12)}.txt"
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(payload)
            file.flush()
            os.fdatasync(file.fileno())
        self._sync_folder()
        return str(path)

    def _sync_folder(self) -> None:
        """Else the file's name could be lost in a power cut, and the ending points to nothing."""
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def read(self, path: str) -> bytes:
        if Path(path).parent != self.folder:
            raise LedgerError(f"{path} is not a spilled payload of this ledger.")
        return Path(path).read_bytes()

    def remove(self, path: str) -> None:
        if Path(path).parent == self.folder:
            Path(path).unlink(missing_ok=True)


def make_private(ledger: Path) -> None:
    """The folder is made 0700 if we make it; the database file exists, 0600, before SQLite opens it."""
    ledger.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(ledger, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    if os.stat(ledger).st_uid == os.getuid():
        os.chmod(ledger, 0o600)
