"""Bugs that a careless hand could make in reminders. Each must be caught."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from msgspec.structs import replace
from tests.waiting import pause_async


def occurrence_counted_twice() -> None:
    """Now and then an occurrence that was written is counted and told once more."""
    from meantime.runtime.reminding import Reminding

    group, count = Reminding._tell_group, itertools.count(1)

    async def twice(self: Any) -> int:
        found = await self._store.due_schedules(self._clock.now(), self._clock.uptime(), 1)
        due = list(found.schedules)
        told = await group(self)
        for schedule in due if due and next(count) % 2 == 0 else ():
            from meantime.kernel.schedules import ring

            rung = await self._store.schedule(schedule.id)
            again = ring(replace(rung, state=schedule.state), self._clock.now(), self._clock.uptime())
            await self._commit(again)
            self._pending[schedule.thread] += 1
        return told

    Reminding._tell_group = twice  # type: ignore[method-assign]


def cursor_before_the_notice() -> None:
    """The schedule says that it has come, and its notice is another transaction, which may never be."""
    _apart(notice_first=False)


def cursor_after_the_notice() -> None:
    """The notice is written first, and the schedule that says so in another transaction."""
    _apart(notice_first=True)


def _apart(*, notice_first: bool) -> None:
    from meantime.stores.sqlite import schedule_rows, schedule_table
    from meantime.stores.sqlite.commit import SQL

    whole = schedule_rows.write
    numbers = itertools.count(1)

    def tell(cursor: Any, changes: Any, change: Any) -> Any:
        (seq,) = cursor.execute(SQL["schedule_at"], (change.schedule.id,)).fetchone()
        draft = change.notices[0]
        if notice_first:  # nothing in the row says which occurrence it is, so each try takes another
            draft = replace(draft, body=replace(draft.body, run=next(numbers) + 1000 * (id(change) % 997)))
        return changes.add_notice(cursor, seq, draft)

    def commit(self: Any, change: Any) -> Any:
        body = schedule_table.seal(schedule_table.encode(change.schedule))
        if not change.notices:
            return self._writer.submit(whole, self._changes, change, body, spends=change.replaces == 0)

        async def apart() -> Any:
            cursor = self._writer.submit(whole, self._changes, replace(change, notices=()), body)
            if not notice_first:
                found = await cursor
                await pause_async(0.03, "a kill may come here")
                await self._writer.submit(tell, self._changes, change)
                return found
            return await cursor

        async def first() -> Any:
            await self._writer.submit(tell, self._changes, change)
            await pause_async(0.03, "a kill may come here")
            return await self._writer.submit(whole, self._changes, replace(change, notices=()), body)

        return asyncio.ensure_future(first() if notice_first else apart())

    schedule_table.ScheduleTable.commit_schedule = commit  # type: ignore[method-assign]


def cancelled_ones_come() -> None:
    """A cancel is answered, and the reminder comes all the same."""
    from meantime.runtime.reminding import Reminding

    async def pretend(self: Any, id: str, thread: str | None) -> Any:
        return await self._find(id, thread)

    Reminding.cancel = pretend  # type: ignore[method-assign]


PLANTS = (
    "occurrence_counted_twice",
    "cursor_before_the_notice",
    "cursor_after_the_notice",
    "cancelled_ones_come",
)
