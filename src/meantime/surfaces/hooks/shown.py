"""What one hook has shown, for the next one: a hook ends before the host has read what it printed."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SHORT = 0.02  # seconds between two tries to get a lock


class Busy(Exception):
    """Another hook of the same conversation is at work."""


class Shown:
    """Open turn, ids of its notices, who was shown them, and when. Only in the hands of who locks it."""

    def __init__(self, file: int) -> None:
        self._file = file
        self.turn = ""
        self.notices: list[str] = []
        self.session = ""
        self.at = 0.0
        self._load()

    @property
    def age(self) -> float:
        """Seconds; one from the future, by a clock that was set back, is old."""
        age = time.time() - self.at
        return age if age >= 0 else float("inf")

    def keep(self, turn: str, notices: list[str], session: str) -> None:
        self.turn, self.notices, self.session, self.at = turn, notices, session, time.time()
        self._save({"turn": turn, "notices": notices, "session": session, "at": self.at})

    def forget(self) -> None:
        self.turn, self.notices, self.session, self.at = "", [], "", 0.0
        os.ftruncate(self._file, 0)

    def _load(self) -> None:
        """One that was cut off in the middle is none: the lease runs out, and the transcript is asked."""
        try:
            found: Any = json.loads(os.pread(self._file, 1_000_000, 0) or b"{}")
            turn, notices = str(found["turn"]), [str(id) for id in found["notices"]]
            session, at = str(found["session"]), float(found["at"])
        except (ValueError, KeyError, TypeError):
            return
        self.turn, self.notices, self.session, self.at = turn, notices, session, at

    def _save(self, value: object) -> None:
        data = json.dumps(value).encode()
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, data, 0)


@contextmanager
def shown(folder: Path, thread: str, patience: float) -> Generator[Shown]:
    """Busy after `patience` seconds."""
    with locked(folder, thread, "shown", patience) as file:
        yield Shown(file)


@contextmanager
def locked(folder: Path, thread: str, kind: str, patience: float) -> Generator[int]:
    """One of its kind and thread at a time. The system lets go of it when the process is gone."""
    place = folder / "hooks"
    place.mkdir(mode=0o700, exist_ok=True)
    name = hashlib.sha256(thread.encode()).hexdigest()[:32]
    file = os.open(place / f"{name}.{kind}", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise Busy from None
                time.sleep(SHORT)
        yield file
    finally:
        os.close(file)
