"""Schedules in memory: by id, and by when they are due on each clock."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice

from meantime.kernel.due_heap import DueHeap
from meantime.kernel.due_times import WALL, Uptime
from meantime.kernel.limits import Retention
from meantime.kernel.schedules import Schedule, ScheduleChange, ScheduleState
from meantime.ports.store import CommitResult, Committed, DueSchedules

from .inboxes import OPEN, Inboxes
from .records import NoticeRecord


class ScheduleRecord:
    """A schedule, and the notices of its occurrences."""

    __slots__ = ("alarms", "schedule")

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.alarms: list[NoticeRecord] = []

    @property
    def is_pending(self) -> bool:
        return self.schedule.state is ScheduleState.PENDING


class MemorySchedules:
    """The part of the store that keeps schedules."""

    _inbox: Inboxes

    def _reset_schedules(self) -> None:
        self._schedules: dict[str, ScheduleRecord] = {}
        self._scheduled_calls: dict[tuple[str, str], str] = {}
        self._pending_by_thread: Counter[str] = Counter()
        self._due = DueHeap()  # of those that are pending

    def commit_schedule(self, change: ScheduleChange) -> asyncio.Future[Committed]:
        done: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        done.set_result(self._commit_schedule(change))
        return done

    def _commit_schedule(self, change: ScheduleChange) -> Committed:
        schedule = change.schedule
        refusal = self._refuse_new_schedule(schedule) if change.replaces == 0 else self._refuse_change(change)
        if refusal is not None:
            return refusal
        record = self._schedules.setdefault(schedule.id, ScheduleRecord(schedule))
        if change.replaces == 0:
            self._add_schedule(schedule)
        elif record.is_pending and schedule.state is not ScheduleState.PENDING:
            self._count_pending(schedule.thread, -1)
            self._due.discard(schedule.id)
        record.schedule = schedule
        record.alarms += (added := [self._inbox.add(None, draft) for draft in change.notices])
        return Committed(CommitResult.DONE, 0, added[-1].number if added else 0)

    def _add_schedule(self, schedule: Schedule) -> None:
        if schedule.tool_call_id is not None:
            self._scheduled_calls[schedule.thread, schedule.tool_call_id] = schedule.id
        self._count_pending(schedule.thread, 1)
        self._due.add(schedule.id, schedule.due)

    def _count_pending(self, thread: str, change: int) -> None:
        self._pending_by_thread[thread] += change
        if not self._pending_by_thread[thread]:
            del self._pending_by_thread[thread]

    def _refuse_new_schedule(self, schedule: Schedule) -> Committed | None:
        if schedule.id in self._schedules:
            return Committed(CommitResult.SAME_ID, existing=schedule.id)
        existing = self._scheduled_calls.get((schedule.thread, schedule.tool_call_id or ""))
        return None if existing is None else Committed(CommitResult.SAME_CALL, existing=existing)

    def _refuse_change(self, change: ScheduleChange) -> Committed | None:
        record = self._schedules.get(change.schedule.id)
        stale = record is None or record.schedule.version != change.replaces
        return Committed(CommitResult.CONFLICT) if stale else None

    async def schedule(self, id: str) -> Schedule | None:
        record = self._schedules.get(id)
        return record.schedule if record else None

    async def schedules(self, thread: str | None, limit: int, offset: int = 0) -> Sequence[Schedule]:
        pending = [one.schedule for one in self._schedules.values() if one.is_pending]
        found = [one for one in pending if thread in (None, one.thread)]
        found.sort(key=lambda one: one.due.at)
        return found[offset : offset + limit]

    async def pending_schedules(self) -> Mapping[str, int]:
        return dict(self._pending_by_thread)

    async def next_due(self, boot: str) -> tuple[float | None, float | None]:
        return self._due.first(WALL), self._due.first(boot)

    async def due_schedules(self, now: float, uptime: Uptime, limit: int) -> DueSchedules:
        return DueSchedules([self._schedules[id].schedule for id in self._due.due(now, uptime, limit)])

    async def leave_boot(self, boot: str) -> int:
        return self._due.leave_boot(boot)

    def _forget_schedules(self, retention: Retention, now: float) -> None:
        over = [one for one in self._schedules.values() if not one.is_pending]
        over.sort(key=lambda one: one.schedule.ended_at or 0.0, reverse=True)
        oldest = now - retention.history_seconds
        recent = {one.schedule.id for one in islice(over, retention.history_tasks)}
        for record in over:
            schedule = record.schedule
            if schedule.id in recent and (schedule.ended_at or 0.0) >= oldest:
                continue
            if not any(alarm.state in OPEN for alarm in record.alarms):
                self._forget_schedule(record)

    def _forget_schedule(self, record: ScheduleRecord) -> None:
        schedule = record.schedule
        for alarm in record.alarms:
            self._inbox.drop_one(alarm)
        del self._schedules[schedule.id]
        if schedule.tool_call_id is not None:
            del self._scheduled_calls[schedule.thread, schedule.tool_call_id]
