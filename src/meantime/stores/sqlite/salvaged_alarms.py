"""Alarms and their schedules after a salvage: each that was saved gets back what it needs of the other."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from meantime.kernel.due_times import DueTime
from meantime.kernel.notice_sources import NoticeBody
from meantime.kernel.schedules import Schedule, ScheduleState, alarm

from .checksums import decode_schedule, decode_words, of_notice, seal
from .commit import encode
from .schedule_rows import columns
from .sql import queries

SQL = queries()
ALARM = 2  # the kind of such a notice
Number = Callable[[sqlite3.Connection, str, float], int]


def mend(db: sqlite3.Connection, number: Number) -> None:
    """`number` gives a notice its place in its thread."""
    for source, words in db.execute(SQL["alarms_of_nothing"]).fetchall():
        _restore_schedule(db, source, decode_words(words))
    db.execute(SQL["drop_alarms_of_nothing"])  # another schedule has the place of theirs
    for source, body in db.execute(SQL["done_without_alarm"]).fetchall():
        _add_alarm(db, source, decode_schedule(body), number)


def _restore_schedule(db: sqlite3.Connection, source: int, words: NoticeBody) -> None:
    """The alarm says all that the schedule still has to: it has come."""
    schedule = Schedule(
        id=words.of,
        thread=words.thread,
        text=words.text,
        state=ScheduleState.DONE,
        version=2,
        due=DueTime(words.at - words.late),
        occurrence=words.run,
        created_at=words.at,
        ended_at=words.at,
    )
    db.execute(SQL["restore_schedule"], (source, *columns(schedule), seal(encode(schedule))))


def _add_alarm(db: sqlite3.Connection, source: int, schedule: Schedule, number: Number) -> None:
    """Whether it was told is lost with it; but a transcript of ours that has it says so."""
    at = schedule.ended_at or schedule.due.at
    words = alarm(schedule, schedule.occurrence, at, max(0.0, at - schedule.due.at))
    was_told = db.execute(SQL["has_entry"], (schedule.thread, words.ref.id)).fetchone() is not None
    place = number(db, schedule.thread, at)
    summed = of_notice(schedule.thread, place, ALARM, source, schedule.occurrence, 0, at)
    state, told_at = ("told", at) if was_told else ("unread", None)
    row = (schedule.thread, place, source, schedule.occurrence, state, at, summed, told_at)
    db.execute(SQL["insert_lost_alarm"], (*row, seal(encode(words))))
