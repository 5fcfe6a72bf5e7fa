"""The last lines of commands, for lists at the owner: of a few at each tick, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from .worker_run import PerformedRun

AT_ONCE = 50  # commands whose last line is looked at in one tick


class OutputLooks:
    def __init__(self) -> None:
        self._looked = 0
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    def look(self, speaking: Iterable[PerformedRun]) -> None:
        if self._closed or (self._looking is not None and not self._looking.done()):
            return
        runs = list(speaking)
        if runs:
            at = self._looked % len(runs)
            chosen = (runs[at:] + runs[:at])[:AT_ONCE]
            self._looked += len(chosen)
            self._looking = asyncio.get_running_loop().create_task(_look(chosen))

    async def close(self) -> None:
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)


async def _look(runs: list[PerformedRun]) -> None:
    for run in runs:
        await run.look()
