"""Quiet files: while `quiet/<thread>` is there, nothing is unread or leased in that thread.

A hook costs its agent time at every tool call, and most have nothing to tell. So the line that `install`
writes looks for this file first, in the shell, and starts no Python while it is there. A missing file costs
time; a stale one would cost a notice. So a file is removed before a notice is committed, and only the owner
of the ledger makes one, when it has looked. Decision 31 says why this is enough.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from meantime.ports.tasks import ThreadCount

FOLDER = "quiet"
MOST = 10_000  # files; the oldest goes first
LOG = logging.getLogger("meantime.hooks")


class QuietFiles:
    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER
        self._there: dict[str, None] = {}  # threads that have a file; the oldest first
        self._looking: set[str] = set()  # threads that are looked at now, and nothing has come for them

    def clear(self) -> None:
        """A former owner's: it may have been killed while it committed. Called before anybody can be told."""
        try:
            for name in os.listdir(self._folder):
                os.unlink(self._folder / name)
        except FileNotFoundError:
            pass
        except OSError as problem:
            LOG.warning("%s cannot be emptied: %s", self._folder, problem)

    async def make(self, thread: str, count: Callable[[], Awaitable[ThreadCount]]) -> None:
        """Makes the file, if there is nothing to tell. A notice that comes while we count is noticed."""
        self._looking.add(thread)
        found = await count()
        if thread not in self._looking or found.unread or found.leased:
            self._looking.discard(thread)
            return
        self._looking.discard(thread)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            os.close(os.open(self._folder / thread, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        except OSError:  # also for a thread that is called "..": its hooks take their time
            return
        self._there[thread] = None
        while len(self._there) > MOST:
            self.remove(next(iter(self._there)))

    def remove(self, thread: str) -> None:
        """Before a notice for this thread is committed, and again afterwards."""
        self._looking.discard(thread)
        if thread not in self._there:
            return
        try:
            with suppress(FileNotFoundError):
                os.unlink(self._folder / thread)
        except OSError as problem:  # tried again with the next notice, and when the next owner starts
            LOG.warning("%s cannot be removed, so its thread is not told: %s", self._folder / thread, problem)
            return
        del self._there[thread]
