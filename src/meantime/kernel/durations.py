"""Durations as people read and write them: `45s`, `2m 30s`, `1h 15m 45s`; and moments as wires write them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)\s*", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}


def seconds_of(text: str) -> float | None:
    """`5s`, `1h30m`, `7d` in seconds; None for what is not a duration. A number needs its unit."""
    said = text.strip().lower()
    parts = list(_PART.finditer(said))
    if not parts or "".join(part[0] for part in parts) != said:
        return None
    return sum(float(part[1]) * _SECONDS[part[2]] for part in parts)


def duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "?"
    whole = max(0, int(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, secs = divmod(rest, 60)
    if hours:
        return f"{hours}h {minutes}m {secs}s"
    if minutes:
        return f"{minutes}m {secs}s"
    return f"{secs}s"


def iso(seconds: float | None) -> str | None:
    """A moment in ISO 8601, UTC, with milliseconds; None for no time, or one that no calendar has."""
    if not seconds:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
