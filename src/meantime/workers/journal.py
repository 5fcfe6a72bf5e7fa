"""The worker's journal: the claims that it has begun, and the endings that nobody has acknowledged.

One file for each claim, there whole or not at all. Values of variables and stdin are never in it. It survives
the end of the worker's process, and need not survive that of the machine: the boot of a claim tells that, and
the owner then believes nothing that the journal does not have. So a claim costs no fsync. An ending that the
owner does not acknowledge within seconds is synced.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from pathlib import Path

import msgspec

from meantime.kernel.errors import LedgerBusy
from meantime.system.atomic_file import PRIVATE, replace_file

from .worker_state import JournalEntry

ENDING, EVENTS = ".json", ".events"


class ClaimJournal:
    """The folder of one worker: its id, its lock and its claims."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: int | None = None
        self.home = ""

    def open(self) -> dict[str, JournalEntry]:
        """The claims of earlier lives, by nonce. Raises LedgerBusy if another worker has this folder."""
        self._folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # the mode is of the last one only
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise LedgerBusy(
                f"Another worker uses {self._folder}.",
                hint="Give this one a name of its own: meantime worker --name NAME",
            ) from None
        self.home = self._id()
        found: dict[str, JournalEntry] = {}
        for path in sorted(self._folder.glob(f"*{ENDING}")):
            with contextlib.suppress(msgspec.MsgspecError):
                entry = msgspec.json.decode(path.read_bytes(), type=JournalEntry)
                found[entry.granted.nonce] = entry
        for path in self._folder.glob(f"*{EVENTS}"):
            if not path.with_suffix(ENDING).exists():  # it was never begun, or is over
                shutil.rmtree(path, ignore_errors=True)
        return found

    def _id(self) -> str:
        path = self._folder / "id"
        known = path.read_text().strip() if path.exists() else ""
        if not known:  # the lock is ours, so nobody else makes one
            known = os.urandom(8).hex()
            replace_file(path, known.encode(), durable=True)
        return known

    def keep(self, entry: JournalEntry, *, synced: bool) -> None:
        """Raises OSError: a claim that cannot be written down must not be begun."""
        path = self._path(entry.granted.nonce)
        replace_file(path, msgspec.json.encode(entry), synced=synced, durable=synced, draft=f".{path.name}")

    def drop(self, nonce: str) -> None:
        self._path(nonce).unlink(missing_ok=True)
        shutil.rmtree(self.events(nonce), ignore_errors=True)

    def events(self, nonce: str) -> Path:
        """The folder in which the command of this claim leaves its events."""
        return self._path(nonce).with_suffix(EVENTS)

    def _path(self, nonce: str) -> Path:
        """No nonce is a part of a path: the owner, or whoever wrote to the broker, chose its text."""
        return self._folder / f"{hashlib.sha256(nonce.encode()).hexdigest()[:32]}{ENDING}"

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
