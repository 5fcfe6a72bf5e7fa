"""Why a run is to come to its end now."""

from __future__ import annotations

from msgspec import Struct

TIMEOUT = "timeout"


class Halt(Struct, frozen=True):
    code: str
    message: str
    terminate_reason: str = "ERROR"
