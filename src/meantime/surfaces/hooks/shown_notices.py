"""Notices that hooks have shown, for the next hook: a hook ends before its host has read what it printed.

One file for each conversation, `hooks/<thread>`. That it is there says that the conversation has hooks; the
hook itself makes it, even while no daemon runs. The daemon writes into it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import msgspec

FOLDER = "hooks"
KEPT = 30 * 86_400.0  # seconds after which a conversation is over; a hook of it makes the file again
MOST = 1_000_000  # bytes of a file


class Shown(msgspec.Struct):
    """The turn that holds what was shown, and where in which transcript each notice may stand from."""

    turn: str = ""
    notices: dict[str, int] = {}  # by id: how long the transcript was when it was shown
    transcript: str = ""
    session: str = ""
    at: float = 0.0

    def age(self, now: float) -> float:
        """Seconds; one from the future, by a clock that was set back, is old."""
        return now - self.at if now >= self.at else float("inf")

    def offset(self, id: str, transcript: str) -> int | None:
        """Where to look from; None for what was never shown there."""
        return self.notices.get(id) if transcript == self.transcript else None


def has_hooks(home: Path, thread: str) -> bool:
    return os.path.isfile(home / FOLDER / thread)


class ShownFiles:
    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def load(self, thread: str) -> Shown:
        """A file that was cut off in the middle shows nothing: the lease runs out, and the transcript is
        looked through."""
        try:
            with open(self._folder / thread, "rb") as file:
                return msgspec.json.decode(file.read(MOST), type=Shown)
        except (OSError, msgspec.DecodeError):  # also an empty one
            return Shown()

    def save(self, thread: str, shown: Shown) -> None:
        data = b"" if shown == Shown() else msgspec.json.encode(shown)
        with suppress(OSError):  # as with a file that was cut off
            self._folder.mkdir(mode=0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(self._folder / thread, flags, 0o600)
            try:
                os.ftruncate(file, 0)
                os.write(file, data)
            finally:
                os.close(file)

    def sweep(self) -> None:
        """Removes what nobody has touched for long."""
        before = time.time() - KEPT
        with suppress(OSError), os.scandir(self._folder) as found:
            for entry in found:
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_mtime < before:
                        os.unlink(entry)
