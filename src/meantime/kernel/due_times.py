"""Times that something is due at: by the wall clock, or so many seconds from now.

A delay is counted by the clock that goes on while the machine sleeps and that no one can set. It begins anew
with every start of the machine; after one, only the wall clock is left to go by.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Struct

from .argument_checks import as_number, shown
from .durations import iso, seconds_of
from .errors import InvalidInput
from .plain_text import plain

WALL = ""  # the clock of times that people set; every other clock is a boot
FARTHEST = 3_660 * 86_400.0  # seconds from now: ten years and some days
GRACE = 60.0  # seconds that a time may lie in the past: it was the present when somebody wrote it down


class Uptime(NamedTuple):
    """The time since the machine was started, with the time that it slept."""

    boot: str  # which start of the machine it is; never empty
    seconds: float


class DueTime(Struct, frozen=True, omit_defaults=True, gc=False):
    """The moment that something is due at."""

    at: float  # by the wall clock; of a delay, what it would show if nobody sets it
    boot: str = ""  # of a delay: the start of the machine that its seconds are counted from
    seconds: float = 0.0

    @property
    def is_delay(self) -> bool:
        return bool(self.boot)

    @property
    def on_clock(self) -> tuple[str, float]:
        """The clock that it is counted by, and when that shows it."""
        return (self.boot, self.seconds) if self.is_delay else (WALL, self.at)

    def wait(self, now: float, uptime: Uptime) -> float:
        """Seconds until then; below 0 it is late by as many."""
        if self.boot and self.boot == uptime.boot:
            return self.seconds - uptime.seconds
        return self.at - now


def due_time(at: float | None, delay: float | None, now: float, uptime: Uptime) -> DueTime:
    """Exactly one of the two must be given.

    at: by the wall clock, in seconds since 1970.
    delay: seconds from now.
    """
    if (at is None) == (delay is None):
        given = "both" if at is not None else "neither"
        raise InvalidInput(
            f"Give at= or delay=, not {given}.", hint='Such as delay="20m", or at= with a time.'
        )
    if delay is not None:
        seconds = check_delay(delay, "delay")
        return DueTime(now + seconds, uptime.boot, uptime.seconds + seconds)
    return DueTime(_check_at(at, now))


def check_delay(delay: object, name: str) -> float:
    number = as_number(delay)
    if number is None or not 0 <= number <= FARTHEST:
        raise InvalidInput(
            f"{name}={shown(delay)} is not a number of seconds from 0 to {FARTHEST:.0f}.",
            hint='Give seconds, or a text such as "20m"; ten years are the most.',
        )
    return float(number)


def check_time(at: object, name: str) -> float:
    """Seconds since 1970; whether it is past or far is not looked at."""
    number = as_number(at)
    if number is None or not abs(number) < 1e12:
        raise InvalidInput(
            f"{name}={shown(at)} is not a time.",
            hint="Give a datetime with its time zone, or seconds since 1970.",
        )
    return float(number)


def _check_at(at: object, now: float) -> float:
    number = check_time(at, "at")
    if number < now - GRACE:
        raise InvalidInput(
            f"at={iso(number) or shown(at)} is in the past.", hint="Give a time that is still to come."
        )
    if number > now + FARTHEST:
        raise InvalidInput(
            f"at={iso(number) or shown(at)} is too far in the future.", hint="Ten years are the most."
        )
    return number


def delay_of(delay: float | str | timedelta | None, name: str = "delay") -> float | None:
    """A delay as people give it: seconds, a text such as "20m", or a timedelta."""
    if isinstance(delay, timedelta):
        return delay.total_seconds()
    if not isinstance(delay, str):
        return delay
    seconds = seconds_of(plain(delay))
    if seconds is None:
        raise InvalidInput(
            f"{name}={shown(delay)} is not a duration.",
            hint='Give seconds, or a text such as "20m" or "1h30m".',
        )
    return seconds


def time_of(at: float | str | datetime | None) -> float | None:
    """A time as people give it: a datetime with its time zone, the same in ISO 8601, or seconds since
    1970."""
    if isinstance(at, str):
        at = _parsed(plain(at))
    if not isinstance(at, datetime):
        return at
    if at.tzinfo is None or at.utcoffset() is None:
        raise InvalidInput(
            f"at={shown(at.isoformat())} has no time zone.",
            hint="Say which: datetime.now().astimezone(), or an offset such as +01:00 or Z.",
        )
    try:
        return at.timestamp()
    except (OverflowError, ValueError, OSError):
        raise InvalidInput(f"at={shown(at.isoformat())} is not a time that this machine knows.") from None


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(
            f"at={shown(text)} is not a time.",
            hint="Give ISO 8601 with its offset, such as 2026-05-01T17:30:00+02:00.",
        ) from None
