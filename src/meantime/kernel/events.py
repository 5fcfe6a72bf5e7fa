"""Facts for observers. They are never mixed with notices: an observer may miss one, a thread may not."""

from __future__ import annotations

from msgspec import Struct

from .lifecycle import Status


class Event(Struct, frozen=True, omit_defaults=True, gc=False):
    kind: str  # submitted, started, cancelling, ended, resumed, progress, cleared, …
    task_id: str
    thread: str
    run: int
    status: Status
    at: float
    seq: int = 0  # given by the store
