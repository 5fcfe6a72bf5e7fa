"""Times as people write them at a shell: in local time, if they do not say otherwise."""

from __future__ import annotations

from meantime.surfaces.cli.parameter_types import LONGEST_DELAY
from meantime.surfaces.terminal.errors import USAGE, CliError
from meantime.surfaces.terminal.terminal_text import plain

GRACE = 60.0  # seconds that a time may lie in the past: it was the present when somebody typed it


def moment(said: str, now: float) -> float:
    """Seconds since 1970. A time of day is the next one, or the present minute; a time without an offset is
    local."""
    from datetime import datetime, timedelta

    try:
        if "-" not in said:
            local = datetime.fromtimestamp(now)
            found = datetime.combine(local.date(), datetime.strptime(said, _form(said)).time())
            if local - timedelta(seconds=GRACE) < found <= local:
                return now
            return (found if found > local else found + timedelta(days=1)).timestamp()
        at = datetime.fromisoformat(said).timestamp()
    except (ValueError, OverflowError, OSError):
        problem = f"{plain(said)!r} is not a time."
        raise CliError(problem, "Write 17:30, or 2026-05-01T17:30.", USAGE) from None
    if at < now - GRACE:
        raise CliError(f"{plain(said)!r} is in the past.", "Give a time that is still to come.", USAGE)
    if at > now + LONGEST_DELAY:
        raise CliError(f"{plain(said)!r} is too far in the future.", "Ten years are the most.", USAGE)
    return at


def _form(said: str) -> str:
    return "%H:%M:%S" if said.count(":") == 2 else "%H:%M"
