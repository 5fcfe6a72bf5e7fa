"""How long a run may take: the requested time, or the default, never over the maximum."""

from __future__ import annotations

from typing import NamedTuple

from .argument_checks import shown
from .constraints import AGE, TIMEOUT
from .durations import seconds_of
from .errors import InvalidInput
from .plain_text import plain

UNBOUNDED = -1.0


class Timeout(NamedTuple):
    seconds: float | None  # None: unbounded
    note: str = ""  # says so where the request was reduced


_UNBOUNDED = Timeout(None)


def resolve(asked: float | None, default: float = UNBOUNDED, maximum: float = UNBOUNDED) -> Timeout:
    if asked is None and default == maximum == UNBOUNDED:
        return _UNBOUNDED
    seconds = check(default if asked is None else asked)
    ceiling = check(maximum)
    if ceiling == UNBOUNDED:
        return Timeout(None if seconds == UNBOUNDED else seconds)
    if seconds == UNBOUNDED:
        return Timeout(ceiling)
    if seconds > ceiling:
        asked_for = "were asked for" if asked is not None else "is the default"
        return Timeout(ceiling, f"{seconds:g} s {asked_for}; {ceiling:g} s is the maximum.")
    return Timeout(seconds)


def given(timeout: float | str | None) -> float | None:
    """A timeout as people give it: seconds, or a text such as "90s" or "1h30m"."""
    if not isinstance(timeout, str):
        return timeout
    seconds = seconds_of(plain(timeout))
    if seconds is None:
        raise InvalidInput(
            f"timeout={shown(timeout)} is not a duration.",
            hint='Give seconds, or a text such as "90s" or "1h30m".',
        )
    return seconds


def check(seconds: object) -> float:
    return float(TIMEOUT(seconds, "timeout"))


def check_age(seconds: object) -> float:
    """Seconds that have passed: 0 or more."""
    return float(AGE(seconds, "age"))
