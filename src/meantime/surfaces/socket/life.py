"""A connection can be lost and come back; a process that has ended does not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable


class Life:
    """Says when a process has ended, where the system can tell."""

    def __init__(self, pid: int | None, over: Callable[[], object]) -> None:
        self._over = over
        self._place: int | None = None
        if pid is None or not hasattr(os, "pidfd_open"):
            return
        try:
            self._place = os.pidfd_open(pid)
        except OSError:
            return
        asyncio.get_running_loop().add_reader(self._place, self._ended)

    def _ended(self) -> None:
        self.close()
        self._over()

    def close(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            asyncio.get_running_loop().remove_reader(place)
            os.close(place)
