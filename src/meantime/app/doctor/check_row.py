"""The doctor's checks, and their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from meantime.daemon.home import Home

OK, WARN, BAD = "ok", "warn", "bad"


class CheckRow(NamedTuple):
    name: str
    level: str
    found: str
    todo: str = ""


class Patient(NamedTuple):
    """Everything that is not a constant of this machine."""

    home: Home
    environ: Mapping[str, str]
    now: float
