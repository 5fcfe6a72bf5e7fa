"""The part of the store that keeps schedules, and finds what is due."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from meantime.kernel.due_times import WALL, Uptime
from meantime.kernel.limits import Retention
from meantime.kernel.schedules import Schedule, ScheduleChange
from meantime.ports.store import Committed, DueSchedules

from . import inbox_transactions
from .checksums import BAD, decode_schedule, seal
from .commit import SQL, Changes, encode
from .schedule_rows import delete, write
from .unreadable_rows import Unreadable
from .writer import Writer

T = TypeVar("T")
FORGET_AT_ONCE = 100  # per transaction


class ScheduleTable(ABC):
    """The part of the store that keeps schedules; how it reads is the store's own."""

    _writer: Writer
    _changes: Changes
    _unreadable: Unreadable

    @abstractmethod
    def _rows(self, sql: str, *values: Any) -> list[Any]: ...

    @abstractmethod
    def _read(self, sql: str, values: Sequence[object]) -> list[Any]: ...

    @abstractmethod
    async def _beside(self, read: Callable[..., T], *args: Any) -> T: ...

    def commit_schedule(self, change: ScheduleChange) -> asyncio.Future[Committed]:
        body = seal(encode(change.schedule))
        return self._writer.submit(write, self._changes, change, body, spends=change.replaces == 0)

    async def schedule(self, id: str) -> Schedule | None:
        return next(self._schedules(self._rows(SQL["schedule_by_id"], id)), None)

    async def schedules(self, thread: str | None, limit: int, offset: int = 0) -> Sequence[Schedule]:
        if thread is not None:
            return list(self._schedules(self._rows(SQL["schedules_of"], thread, limit, offset)))
        return list(self._schedules(await self._beside(self._read, SQL["schedules"], (limit, offset))))

    async def pending_schedules(self) -> Mapping[str, int]:
        return dict(await self._beside(self._read, SQL["pending_schedules"], ()))

    async def next_due(self, boot: str) -> tuple[float | None, float | None]:
        return self._rows(SQL["next_due"], boot)[0]

    async def due_schedules(self, now: float, uptime: Uptime, limit: int) -> DueSchedules:
        clocks = ((WALL, now), (uptime.boot, uptime.seconds))
        found = [row for clock in clocks for row in self._rows(SQL["schedules_due"], *clock, limit)]
        due: list[Schedule] = []
        set_aside: list[str] = []
        for seq, body, thread in found:
            due += (read := list(self._schedules([(body,)])))
            if not read and await self._writer.submit(inbox_transactions.changed, "set_schedule_aside", seq):
                set_aside.append(thread)
        return DueSchedules(sorted(due, key=lambda one: one.due.wait(now, uptime))[:limit], set_aside)

    async def leave_boot(self, boot: str) -> int:
        return await self._writer.submit(inbox_transactions.changed, "count_by_the_wall_clock", boot)

    async def _forget_schedules(self, retention: Retention, now: float) -> None:
        old = (now - retention.history_seconds, retention.history_tasks, FORGET_AT_ONCE)
        while found := await self._beside(self._read, SQL["forgettable_schedules"], old):
            if not await self._writer.submit(delete, [seq for (seq,) in found]):
                return

    def _schedules(self, rows: Iterable[Any]) -> Iterator[Schedule]:
        for (body,) in rows:
            try:
                yield decode_schedule(body)
            except BAD as problem:
                self._unreadable.note(body, str(problem))
