"""usual durations: the estimator learns from every ending, and at the open from the newest of the ledger."""

from __future__ import annotations

import asyncio
import logging

from meantime.kernel.change import Change
from meantime.kernel.errors import MeantimeError
from meantime.kernel.estimates import Estimates
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.store import Committed, Query

from .record import Record

logger = logging.getLogger("meantime")
HISTORY = 2_000  # completed tasks that are learned from at the open
_COMPLETED = frozenset({Status.COMPLETED})
PAGE = 200  # read at once, so that the loop is never held up


class UsualDurations:
    def __init__(self, record: Record) -> None:
        self._record = record
        self.estimates = Estimates()
        self._meanwhile: set[str] | None = set()  # endings that are learned while the history is read
        self._remembering = BackgroundTasks()

    def open(self) -> None:
        """Begins to read the history beside everything else: nobody waits for it to start work."""
        self._remembering.start(self._remember())

    async def ready(self) -> None:
        """Waits until the history is known."""
        await self._remembering.wait()

    async def _remember(self) -> None:
        """Oldest first, as if every task had ended just now. Endings that came meanwhile are the newest of
        all, and few: their place among the others does not matter."""
        history: list[Task] = []
        try:
            while len(history) < HISTORY:
                query = Query(statuses=_COMPLETED, hidden=True, limit=PAGE, offset=len(history))
                page = await self._record.store.list(query)
                history += page
                if len(page) < PAGE:
                    break
                await asyncio.sleep(0)
        except MeantimeError as problem:
            logger.warning("Usual durations are not learned from the ledger: %s", problem)
        learned, self._meanwhile = self._meanwhile or set(), None
        for task in reversed(history):
            if task.id not in learned:
                self.estimates.learn_from(task)

    def on_commit(self, change: Change, committed: Committed) -> None:
        if change.ends:
            self.estimates.learn_from(change.task)
            if self._meanwhile is not None:
                self._meanwhile.add(change.task.id)

    async def close(self) -> None:
        await self._remembering.close()
