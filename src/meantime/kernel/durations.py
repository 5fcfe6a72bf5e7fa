"""Durations for people: `45s`, `2m 30s`, `1h 15m 45s`."""

from __future__ import annotations

import math


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
