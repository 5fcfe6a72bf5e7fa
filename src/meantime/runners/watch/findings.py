"""Findings of a watch, and their way into the ledger."""

from __future__ import annotations

from msgspec.structs import replace

from meantime.kernel.errors import Degraded, LedgerError, MeantimeError
from meantime.kernel.event_notices import Events, one
from meantime.kernel.model import Task
from meantime.kernel.watches import WatchCursor, cursor_of, spec_of, stored
from meantime.ports.clock import Clock, sleep
from meantime.ports.watch_ledger import WatchLedger

RETRY = 1.0  # seconds, while the disk does not take what was found


class Findings:
    """Everything that one watch has found. Its cursor moves only with the ledger's."""

    def __init__(self, task: Task, ledger: WatchLedger, clock: Clock) -> None:
        self.task = task
        self.spec = spec_of(task)
        self.cursor = cursor_of(task) or WatchCursor(at=self.spec.begin)
        self.is_new = task.run.cursor is None
        self._ledger = ledger
        self._clock = clock

    async def tell(self, events: Events, cursor: WatchCursor) -> None:
        """In one transaction; tried until the disk takes it. A run that is over tells nothing more."""
        while True:
            try:
                await self._ledger.found(self.task, events, stored(cursor))
            except (LedgerError, Degraded):
                await sleep(self._clock, RETRY)
            except MeantimeError:
                return  # the watch was deleted, or we are closing: the next owner goes on from the cursor
            else:
                self.cursor, self.is_new = cursor, False
                return

    async def say_trouble(self, text: str) -> None:
        """Why it cannot look: told once, and kept until a look goes well (the empty text)."""
        if text and text != self.cursor.trouble:
            await self.tell(one(text), replace(self.cursor, trouble=text))
        elif not text and self.cursor.trouble:
            await self.save(trouble="")

    async def begin(self, at: int) -> None:
        """Where a watch begins that was delayed: kept, so that a later owner does not begin behind it."""
        self.cursor = replace(self.cursor, at=at)
        await self.save()

    async def save(self, **changes: object) -> None:
        """The cursor alone. Failing is harmless: what was looked at is looked at once more."""
        was, cursor = self.cursor, replace(self.cursor, **changes)
        if cursor == was and not self.is_new:
            return
        try:
            kept = await self._ledger.save(self.task, None if self.is_new else stored(was), stored(cursor))
        except MeantimeError:
            return
        if kept and self.cursor is was:
            self.cursor, self.is_new = cursor, False
