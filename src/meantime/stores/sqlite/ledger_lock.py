"""The lock of a ledger, which names its owner, and the file of the ledger: both private to this user."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import msgspec

from meantime.kernel.errors import LedgerBusy
from meantime.system.origin import ELSEWHERE, Origin
from meantime.system.platform import sync_file

DAMAGE = 300  # characters that are kept of what is said of it
CREATE = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Lock:
    """The owner of the ledger. The kernel's flock decides; the text inside tells people, and the next owner:
    how the ledger was left, and which file it was, so that a copy of it is known for one.
    """

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self.path = Path(f"{ledger}.lock")
        self._fd = -1
        self.was_clean = True
        self.was_made = False  # a database of ours lay here before
        self.was_marked = False  # its owner keeps the mark of the WAL, see wal_mark.py
        self.is_copy = False  # the ledger was copied here, and nobody has taken it for its own yet
        self.damage = ""  # that the last owner met, and could not look at closely
        self.checkpoints = 0  # that the database has seen at least: one with fewer is an older copy
        self._origin: Origin | None = None  # as it is written
        self._writing = threading.Lock()
        _locks.add(self)

    def take(self) -> None:
        is_new = not self.path.exists()
        fd = os.open(self.path, CREATE, 0o600)
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
        said = _parse(text)
        self.was_clean = not text or bool(said.get("clean"))
        self.was_made = bool(said.get("made"))
        self.was_marked = bool(said.get("marked"))
        self.damage = str(said.get("damage", ""))[:DAMAGE]
        self.checkpoints = _number(said.get("checkpoints"))
        self._origin = ELSEWHERE if is_new else _origin(said)
        if self._origin is not None and _holds(self._ledger):
            self.is_copy = not self._origin.is_of(self._ledger)
        self._fd = fd
        self._write(clean=False)
        if text and self.was_clean:  # a power cut would leave it clean beside a WAL of ours
            with contextlib.suppress(OSError):
                sync_file(fd)

    def mark_made(self, checkpoints: int) -> None:
        """There is a database of ours. It may be a new one, in place of one that was removed or damaged."""
        self.was_made = self.was_marked = True
        self.damage, self.checkpoints = "", checkpoints
        if not self.is_copy:
            self.own()
        self._write(clean=False)

    def own(self) -> None:
        """From now on this file is the ledger, wherever it came from. On disk: should that be forgotten in a
        power cut, the ledger would be taken for a copy of itself."""
        found = Origin.of(self._ledger)
        if found == self._origin and not self.is_copy:
            return
        self._origin, self.is_copy = found, False
        self._write(clean=False)
        with contextlib.suppress(OSError):
            sync_file(self._fd)

    def disown(self) -> None:
        """The next ledger that is put here is found to be a copy, whoever opens it."""
        self._origin, self.was_made, self.checkpoints = ELSEWHERE, True, 0
        self._write(clean=True)
        sync_file(self._fd)

    def accept_copy(self) -> None:
        """An older copy of the ledger lies here, and that is meant."""
        self._origin, self.is_copy, self.checkpoints = ELSEWHERE, True, 0
        self._write(clean=False)

    def note(self, *, checkpoints: int | None = None, damage: str | None = None) -> None:
        """For the next owner, however this one ends. From any thread."""
        self.checkpoints = self.checkpoints if checkpoints is None else checkpoints
        self.damage = self.damage if damage is None else damage[:DAMAGE]
        self._write(clean=False)

    def _write(self, *, clean: bool) -> None:
        with self._writing, contextlib.suppress(OSError):  # a full disk does not stop us from owning
            text = self._text(clean=clean)
            os.pwrite(self._fd, text, 0)
            os.ftruncate(self._fd, len(text))

    def _text(self, *, clean: bool) -> bytes:
        origin = {} if self._origin is None else {"origin": list(self._origin)}
        return json.dumps(
            {
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "since": time.strftime("%Y-%m-%d %H:%M:%S"),
                "command": " ".join(sys.argv)[:200],
                "clean": clean,
                "made": self.was_made,
                "marked": self.was_marked,
                "checkpoints": self.checkpoints,
                **({"damage": self.damage} if self.damage else {}),
                **origin,
            }
        ).encode("utf-8", "replace")

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


def was_made(ledger: Path) -> bool:
    """Whether a ledger was here, as its lock says; for whoever only looks."""
    return bool(_said(ledger).get("made"))


def checkpoints_seen(ledger: Path) -> int:
    """By the ledger that was here, as its lock says; for whoever only looks."""
    return _number(_said(ledger).get("checkpoints"))


def _said(ledger: Path) -> dict[str, Any]:
    try:
        return _parse(Path(f"{ledger}.lock").read_bytes()[:4096])
    except OSError:
        return {}


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _origin(said: dict[str, Any]) -> Origin | None:
    """None where an older version wrote it, or where a power cut left nothing of it."""
    try:
        return msgspec.convert(said["origin"], Origin)
    except (KeyError, msgspec.ValidationError):
        return None


def _holds(ledger: Path) -> bool:
    try:
        return ledger.stat().st_size > 0
    except OSError:
        return False


def _owner(text: bytes) -> str:
    owner = _parse(text)
    if not owner:
        return "another process"
    mine = " (this very process)" if owner.get("pid") == os.getpid() else ""
    who = f"process {owner.get('pid')}{mine} on {owner.get('host')}"
    return f"{who} since {owner.get('since')}: {owner.get('command')}"


def make_private(ledger: Path) -> None:
    """The folder is made 0700 if we make it; the database file exists, 0600, before SQLite opens it."""
    ledger.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(ledger, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    if os.stat(ledger).st_uid == os.getuid():
        os.chmod(ledger, 0o600)
