"""Durations for people: `45s`, `2m 30s`, `1h 15m 45s`; and moments as wires write them."""

from __future__ import annotations

import math
from datetime import UTC, datetime


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
