"""Loaded by the daemon of a soak, as one of its tools: what belongs to no task is removed after a minute, and
not after an hour, so that a soak of an hour sees the disk when as much goes as comes."""

from __future__ import annotations

import sys

from meantime.runtime import upkeep

if "meantime.app.daemon" in sys.orig_argv:
    upkeep.STRAY = 60.0
