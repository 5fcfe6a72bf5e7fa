"""The one pipe in which all shims speak, and who listens to which."""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path

from .shim import cells
from .shim_watch import ShimWatch

RECONCILE = 5.0  # seconds between looks at all of them: a message can be missed, an ending cannot


class ShimEventPipe:
    def __init__(self) -> None:
        self.watches: dict[bytes, ShimWatch] = {}
        self._pipe = -1
        self._round: asyncio.TimerHandle | None = None

    @property
    def are_open(self) -> bool:
        return self._pipe >= 0

    def open(self, path: Path) -> None:
        """Also once more: should somebody have removed the pipe, new shims speak into a new one."""
        if self.are_open and os.path.samestat(os.fstat(self._pipe), os.stat(path)):
            return
        self.close()
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # it never hangs up
        asyncio.get_running_loop().add_reader(self._pipe, self._on_readable)
        self._go_round()

    def _go_round(self) -> None:
        for watch in list(self.watches.values()):
            watch.reconcile()
        self._round = asyncio.get_running_loop().call_later(RECONCILE, self._go_round)

    def _on_readable(self) -> None:
        size = cells.NAME_LENGTH + 1
        with contextlib.suppress(BlockingIOError):
            said = os.read(self._pipe, 1000 * size)
            for at in range(0, len(said), size):
                watch = self.watches.get(said[at : at + size - 1])
                if watch is not None:
                    watch.on_event(said[at + size - 1 : at + size])

    def close(self) -> None:
        if self._round is not None:
            self._round.cancel()
        if self._pipe >= 0:
            asyncio.get_running_loop().remove_reader(self._pipe)
            os.close(self._pipe)
            self._pipe = -1
