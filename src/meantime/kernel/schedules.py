"""Schedules: a text that a thread is told when its time has come. Each occurrence is one notice, an alarm.

A schedule says in its own row which occurrence came last, and that row is written in one transaction with the
alarm: an occurrence comes once, whatever is killed in between.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from .argument_checks import check_text
from .due_times import DueTime, Uptime
from .errors import InvalidInput, NotFound, Refused
from .ids import ENTROPY, crockford
from .notice_sources import SCHEDULE, Draft, NoticeBody, SourceKind
from .payloads import one_line

MOST_TEXT = 4_000  # characters
TITLE = 80  # characters


class ScheduleState(StrEnum):
    """Whether a schedule is still to come."""

    PENDING = "pending"
    DONE = "done"  # it has come, and will not come again
    CANCELLED = "cancelled"


class Schedule(Struct, frozen=True, omit_defaults=True, gc=False, kw_only=True):
    """A reminder: what a thread is told, and when."""

    id: str
    thread: str  # that is told
    text: str
    state: ScheduleState = ScheduleState.PENDING
    version: int = 1
    due: DueTime  # the next occurrence, or the last one where there is no other
    occurrence: int = 0  # that came last
    created_at: float = 0.0
    ended_at: float | None = None  # when it came, or was cancelled
    tool_call_id: str | None = None

    @property
    def due_at(self) -> float:
        """When it is due, by the wall clock; for a delay, if nobody sets that clock."""
        return self.due.at

    @property
    def kind(self) -> str:
        """ "delay" is counted in seconds from its creation, "at" is a time of the wall clock."""
        return "delay" if self.due.is_delay else "at"

    @property
    def title(self) -> str:
        """The beginning of its text, in one line."""
        return one_line(self.text, TITLE)

    def __repr__(self) -> str:
        return f"<Schedule {self.id} {self.title!r} {self.state}>"


class ScheduleChange(Struct, frozen=True, gc=False):
    """The content of one transaction: a schedule as it is from now on, and the alarm that goes with it."""

    schedule: Schedule
    replaces: int  # the version that it replaces; 0 creates
    notices: tuple[Draft, ...] = ()


def schedule_id(entropy: bytes) -> str:
    return SCHEDULE + crockford(entropy)


def is_schedule(id: str) -> bool:
    """Whether it looks like an id of `schedule_id`."""
    return id.startswith(SCHEDULE) and len(id) == len(SCHEDULE) + ENTROPY


def check_reminder(text: object) -> str:
    said = check_text(text, "text", MOST_TEXT)
    if not said.strip():
        raise InvalidInput("text must say something.", hint="Say what to be reminded of.")
    return said


def create(schedule: Schedule) -> ScheduleChange:
    return ScheduleChange(schedule, 0)


def ring(schedule: Schedule, now: float, uptime: Uptime) -> ScheduleChange | None:
    """Its next occurrence, with how late it comes; None where it is not due, or not pending."""
    wait = schedule.due.wait(now, uptime)
    if schedule.state is not ScheduleState.PENDING or wait > 0:
        return None
    occurrence = schedule.occurrence + 1
    body = alarm(schedule, occurrence, now, -wait)
    rung = replace(
        schedule,
        state=ScheduleState.DONE,
        version=schedule.version + 1,
        occurrence=occurrence,
        ended_at=now,
    )
    return ScheduleChange(rung, schedule.version, (Draft(schedule.thread, now, body=body),))


def alarm(schedule: Schedule, occurrence: int, at: float, late: float) -> NoticeBody:
    """The words of one occurrence."""
    return NoticeBody(
        kind=SourceKind.ALARM,
        of=schedule.id,
        run=occurrence,
        thread=schedule.thread,
        title=schedule.title,
        text=schedule.text,
        at=at,
        late=late,
    )


def cancel(schedule: Schedule, now: float) -> ScheduleChange | None:
    """None where it is cancelled already. One that has come cannot be taken back."""
    if schedule.state is ScheduleState.CANCELLED:
        return None
    if schedule.state is ScheduleState.DONE:
        raise Refused(
            f"Reminder {schedule.id} has come already.", code="ended", hint="It is in the inbox, or told."
        )
    gone = replace(schedule, state=ScheduleState.CANCELLED, version=schedule.version + 1, ended_at=now)
    return ScheduleChange(gone, schedule.version)


def no_schedule(id: str) -> NotFound:
    return NotFound(f"No reminder {id!r} in this thread.", hint="List those that are still to come.")
