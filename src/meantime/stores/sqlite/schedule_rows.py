"""Rows of schedules, and the transactions that write them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, NamedTuple

from meantime.kernel.due_times import WALL
from meantime.kernel.schedules import Schedule, ScheduleChange
from meantime.ports.store import CommitResult, Committed

from .checksums import BAD, decode_schedule
from .commit import SQL, Changes

_CONFLICT = Committed(CommitResult.CONFLICT)


class ScheduleRow(NamedTuple):
    """A schedule, as its columns tell it."""

    seq: int
    id: str
    thread: str
    kind: str
    state: str
    version: int
    occurrence: int
    clock: str
    due: float
    at: float
    tool_call: str | None
    updated: float
    body: Any

    def problem(self) -> str:
        """Why it cannot be used, or the empty string. The columns repeat what the body says; a delay of a
        former boot is counted by the wall clock."""
        try:
            schedule = decode_schedule(self.body)
        except BAD as problem:
            return str(problem)
        expected = columns(schedule)
        by_the_wall = (*expected[:6], WALL, schedule.due.at, *expected[8:])
        return "" if self[1:12] in (expected, by_the_wall) else "its columns contradict its body"


def columns(schedule: Schedule) -> tuple[Any, ...]:
    clock, when = schedule.due.on_clock
    return (
        schedule.id, schedule.thread, schedule.kind, str(schedule.state), schedule.version,
        schedule.occurrence, clock, when, schedule.due.at, schedule.tool_call_id, updated(schedule),
    )  # fmt: skip


def updated(schedule: Schedule) -> float:
    return schedule.created_at if schedule.ended_at is None else schedule.ended_at


def write(cursor: sqlite3.Cursor, changes: Changes, change: ScheduleChange, body: bytearray) -> Committed:
    """The first statement decides: if it changes nothing, nothing else is written."""
    schedule = change.schedule
    if change.replaces == 0:
        cursor.execute(SQL["insert_schedule"], (*columns(schedule), body))
        if not cursor.rowcount:
            return _in_the_way(cursor, schedule)
        source = cursor.lastrowid
    else:
        said = (str(schedule.state), schedule.version, schedule.occurrence, updated(schedule), body)
        row = cursor.execute(SQL["update_schedule"], (*said, schedule.id, change.replaces)).fetchone()
        if row is None:
            return _CONFLICT
        (source,) = row
    number = 0
    for draft in change.notices:
        number = changes.add_notice(cursor, source, draft)
    return Committed(CommitResult.DONE, 0, number)


def _in_the_way(cursor: sqlite3.Cursor, schedule: Schedule) -> Committed:
    if cursor.execute(SQL["schedule_at"], (schedule.id,)).fetchone():
        return Committed(CommitResult.SAME_ID, existing=schedule.id)
    (existing,) = cursor.execute(SQL["schedule_of_call"], (schedule.thread, schedule.tool_call_id)).fetchone()
    return Committed(CommitResult.SAME_CALL, existing=existing)


def delete(cursor: sqlite3.Cursor, rows: Sequence[int]) -> int:
    """Schedules that are over, with their alarms."""
    gone = 0
    for seq in rows:
        if cursor.execute(SQL["delete_schedule"], (seq,)).rowcount:
            cursor.execute(SQL["delete_alarms"], (seq,))
            gone += 1
    return gone
