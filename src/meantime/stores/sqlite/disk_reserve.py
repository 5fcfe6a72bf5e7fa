"""Disk space that is kept back for endings."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from meantime.system.platform import preallocate

from .ledger_lock import CREATE


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
            fd = os.open(self._path, CREATE, 0o600)
            try:
                preallocate(fd, self.SIZE)
            finally:
                os.close(fd)
        except OSError:
            return False
        self.held, self.spent = True, False
        return True

    def drop(self) -> None:
        """At a clean close: nobody needs it until the next open."""
        self.held = False
        with contextlib.suppress(OSError):  # the disk takes nothing any more: the next owner finds it here
            self._path.unlink(missing_ok=True)

    def spend(self) -> bool:
        """Gives the space back to the disk; False if that was done already."""
        held, self.held, self.spent = self.held, False, True
        with contextlib.suppress(OSError):
            self._path.unlink()
        return held
