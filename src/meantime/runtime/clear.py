"""clear: hiding what has ended, and deleting it for good."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from meantime.kernel.argument_checks import check_all
from meantime.kernel.ids import check_id
from meantime.kernel.lifecycle import ENDED
from meantime.kernel.model import Task
from meantime.kernel.timeouts import check_age
from meantime.ports.engine import Engine
from meantime.ports.store import Query

from .queries import Looking
from .record import Record
from .session_cleanup import SessionCleanup

PAGE = 1_000  # tasks that are looked at, and hidden, at once


class Clearing:
    def __init__(self, record: Record, looking: Looking, engine: Engine, sessions: SessionCleanup) -> None:
        self._record = record
        self._looking = looking
        self._engine = engine
        self._sessions = sessions

    async def clear(
        self, thread: str, refs: Sequence[str] | None, batch: str | None, older_than: float
    ) -> int:
        """Hides ended tasks from listings; they still answer get, and an untold one is still told."""
        latest = self._record.clock.now() - check_age(older_than)
        if refs is not None:
            found = [await self._looking.find(ref, thread) for ref in check_all(refs, str, "refs")]
            return await self._hide([task for task in found if _is_over(task, latest)])
        if batch is not None:
            check_id(batch, "batch")
        hidden, passed_over = 0, 0
        while True:
            query = Query(thread, ENDED, batch, limit=PAGE, offset=passed_over)
            found = await self._record.store.list(query)
            over = [task for task in found if _is_over(task, latest)]
            hidden += await self._hide(over)
            passed_over += len(found) - len(over)
            if len(found) < PAGE:
                return hidden

    async def _hide(self, tasks: Sequence[Task]) -> int:
        """All at once, so that they share commits. One that was resumed meanwhile stays in sight."""
        hide = {"hidden": True}
        amending = (
            self._record.amend(task.id, lambda task: hide if task.ended else None, event="cleared")
            for task in tasks
            if not task.hidden
        )
        return sum(task.hidden for task in await asyncio.gather(*amending))

    async def purge(self, refs: Sequence[str]) -> int:
        tasks = [await self._looking.find(ref, None) for ref in check_all(refs, str, "refs")]
        gone = await self._record.store.purge([task.id for task in tasks], self._record.clock.now())
        purged = [task for task in tasks if await self._record.store.load(task.id) is None]
        for runner in self._engine.lasting():
            for task in purged:
                if task.work.kind == runner.kind:
                    runner.forget(task)
        await self._sessions.forget(purged)
        return gone


def _is_over(task: Task, latest: float) -> bool:
    return task.ended and (task.run.ended_at or 0.0) <= latest
