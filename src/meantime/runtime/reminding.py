"""reminding: tells threads what they asked to be reminded of, when it is due.

One alarm of the clock is set, for the next reminder of all. The reconciler's round, which is there anyway,
compares the clocks with it: after a sleep of the machine, or a jump of the wall clock, it is set again.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence

from meantime.kernel import schedules
from meantime.kernel.constraints import check_count
from meantime.kernel.due_times import DueTime, due_time
from meantime.kernel.errors import Closed, Degraded, Duplicate, LedgerError, LimitReached
from meantime.kernel.ids import ENTROPY, check_id
from meantime.kernel.limits import NO_LIMIT, Limits
from meantime.kernel.schedules import Schedule, ScheduleChange, no_schedule, schedule_id
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.store import CommitResult, Committed

from .due_alarm import AT_ONCE, DueAlarm
from .entropy import entropy
from .record import DRAIN, Record, duplicate_call

logger = logging.getLogger("meantime")
MOST_LISTED = 1_000
RETRY = 5.0  # seconds, while the disk does not take it


class Reminding:
    def __init__(self, record: Record, limits: Callable[[], Limits]) -> None:
        self._record = record
        self._store = record.store
        self._clock = record.clock
        self._limits = limits
        self._pending: Counter[str] = Counter()  # by thread, those on their way to the ledger included
        self.pending = 0  # of all
        self._alarm = DueAlarm(self._clock, self._ring)
        self._beside = BackgroundTasks()
        self._is_ringing = False
        self._is_open = False

    async def open(self) -> None:
        """Reminders that came due while nobody was there are told now, and say how late they are."""
        self._pending = Counter(await self._store.pending_schedules())
        self.pending = self._pending.total()
        if self.pending:
            await self._store.leave_boot(self._clock.uptime().boot)
        self._is_open = True
        self._alarm.next_is(*await self._store.next_due(self._clock.uptime().boot))

    def _check_open(self) -> None:
        if not self._is_open:
            raise Closed

    def pending_of(self, thread: str) -> int:
        return self._pending.get(thread, 0)

    async def close(self) -> None:
        self._is_open = False
        self._alarm.cancel()
        await self._beside.wait(DRAIN)

    async def remind(
        self, thread: str, text: str, at: float | None, delay: float | None, tool_call_id: str | None
    ) -> Schedule:
        self._check_open()
        text = schedules.check_reminder(text)
        call = None if tool_call_id is None else check_id(tool_call_id, "tool_call_id")
        now = self._clock.now()
        due = due_time(at, delay, now, self._clock.uptime())
        self._check_limits(thread)
        schedule = Schedule(
            id=schedule_id(entropy(ENTROPY)),
            thread=thread,
            text=text,
            due=due,
            created_at=now,
            tool_call_id=call,
        )
        self._pending[thread] += 1
        self.pending += 1

        def created(done: bool) -> None:
            if done:
                self._hear_of(due)
            else:
                self._drop_pending(thread)

        committed = await self._record.commit_schedule(schedules.create(schedule), created)
        if committed.result is CommitResult.SAME_CALL:
            raise duplicate_call(call or "", committed.existing, "reminder")
        if committed.result is CommitResult.SAME_ID:
            raise Duplicate.of_id(schedule.id)
        return schedule

    def _hear_of(self, due: DueTime) -> None:
        if not self._is_ringing and self._is_open:
            self._alarm.hear_of(due)

    def _check_limits(self, thread: str) -> None:
        limits = self._limits()
        for count, most, where in (
            (self._pending[thread], limits.reminders_per_thread, "in this thread"),
            (self.pending, limits.reminders, "in all"),
        ):
            if most != NO_LIMIT and count >= most:
                raise LimitReached(
                    f"{count} of at most {most} reminders are pending {where}.", running=count, limit=most
                )

    def _drop_pending(self, thread: str) -> None:
        self.pending -= 1
        self._pending[thread] -= 1
        if not self._pending[thread]:
            del self._pending[thread]

    async def schedules(self, thread: str | None, limit: int, offset: int) -> Sequence[Schedule]:
        self._check_open()
        check_count(limit, "limit", 1, MOST_LISTED)
        check_count(offset, "offset", 0, 1 << 62)
        return await self._store.schedules(thread, limit, offset)

    async def cancel(self, id: str, thread: str | None) -> Schedule:
        self._check_open()
        while True:
            schedule = await self._find(check_id(id, "id"), thread)
            change = schedules.cancel(schedule, self._clock.now())
            if change is None:
                return schedule
            if (await self._commit(change)).result is CommitResult.DONE:
                return change.schedule

    async def _find(self, id: str, thread: str | None) -> Schedule:
        schedule = await self._store.schedule(id)
        if schedule is None or thread not in (None, schedule.thread):
            raise no_schedule(id)
        return schedule

    def _commit(self, change: ScheduleChange) -> asyncio.Future[Committed]:
        def landed(done: bool) -> None:
            if done and change.schedule.state is not schedules.ScheduleState.PENDING:
                self._drop_pending(change.schedule.thread)

        return self._record.commit_schedule(change, landed)

    # -- telling

    def look_at_clocks(self) -> None:
        """After a jump of a clock the alarm is set again."""
        if not self._is_ringing and self._is_open:
            self._alarm.look_at_clocks()

    def _ring(self) -> None:
        if not self._is_ringing and self._is_open:
            self._is_ringing = True
            self._beside.start(self._tell_due())

    async def _tell_due(self) -> None:
        """In groups, until none is due. A disk that does not take them is tried again, as is a row that says
        it is due and cannot be told."""
        upcoming: tuple[float | None, float | None] | None = None
        now, uptime = self._clock.now(), self._clock.uptime()
        try:
            while self._is_open and await self._tell_group():
                now, uptime = self._clock.now(), self._clock.uptime()
            upcoming = await self._store.next_due(uptime.boot)
        except (LedgerError, Degraded) as problem:
            logger.warning("Reminders are due and could not be recorded; tried again: %s", problem)
        except Closed:
            return  # the next owner goes on
        finally:
            self._is_ringing = False
        if not self._is_open:
            return
        if upcoming is None or any(
            due is not None and due <= at for due, at in zip(upcoming, (now, uptime.seconds), strict=True)
        ):
            self._alarm.ring_in(RETRY)  # nothing could be done about what is due: not again at once
        else:
            self._alarm.next_is(*upcoming)

    async def _tell_group(self) -> int:
        """How many are due no longer."""
        now, uptime = self._clock.now(), self._clock.uptime()
        due = await self._store.due_schedules(now, uptime, AT_ONCE)
        for thread in due.set_aside:
            self._drop_pending(thread)
        changes = [
            change for one in due.schedules if (change := schedules.ring(one, now, uptime)) is not None
        ]
        committed = await asyncio.gather(*(self._commit(change) for change in changes))
        await asyncio.sleep(0)  # others have their turn, even where the store waits for nothing
        return len(due.set_aside) + sum(one.result is CommitResult.DONE for one in committed)
