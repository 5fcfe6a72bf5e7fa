"""session cleanup: what a host keeps of a conversation goes with the last task that works in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from meantime.kernel.model import Task
from meantime.ports.engine import Engine
from meantime.ports.runner import KeepingRunner
from meantime.ports.store import Query

from .record import Record


class SessionCleanup:
    def __init__(self, record: Record, engine: Engine) -> None:
        self._record = record
        self._engine = engine

    async def forget(self, tasks: Iterable[Task]) -> None:
        """After these were deleted for good."""
        keeping = {runner.kind: runner for runner in self._keeping()}
        for task in tasks:
            runner = keeping.get(task.work.kind)
            if runner is not None and task.session is not None and not await self._is_used(task.session):
                runner.forget_session(task)

    async def sweep(self, older_than: float) -> None:
        """Removes sessions whose tasks the ledger has forgotten, or whose removal a crash has cut short. Not
        at once: a session is there before its task has it on record.
        """
        for runner in self._keeping():
            active = [task for task in self._record.live.values() if task.work.kind == runner.kind]
            await runner.sweep_sessions(active, self._is_used, older_than)

    def _keeping(self) -> list[KeepingRunner]:
        return [cast("KeepingRunner", each) for each in self._engine.lasting() if each.abilities.keep]

    async def _is_used(self, session: str) -> bool:
        """A fork that has not begun counts: its beginning is copied then."""
        live = self._record.live.values()
        if any(session in (task.session, _source(task)) for task in live):
            return True
        return bool(await self._record.store.list(Query(session=session, hidden=True, limit=1)))


def _source(task: Task) -> str | None:
    given = cast("dict[str, dict[str, str] | None]", task.work.input) if task.forked else {}
    return (given.get("fork_of") or {}).get("session")
