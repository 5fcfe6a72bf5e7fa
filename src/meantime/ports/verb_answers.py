"""Answers of the verbs of ports.tasks that are more than one value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from meantime.kernel.change import Disposition
from meantime.kernel.model import Ending, Json, Task
from meantime.kernel.notices import LEFT_RUNNING, Notice


class Resolved(NamedTuple):
    mode: str  # "synchronous" or "background"
    result: Json = None
    task: Task | None = None


class Answer(Resolved):
    """A call resolves once: a result, or a task that goes on. Never both."""

    ending: Ending | None = None  # what the result came with; beside the tuple

    @property
    def left_running(self) -> Sequence[int]:
        """Processes that a command started and left running."""
        left = self.ending.emitted.get(LEFT_RUNNING) if self.ending else None
        return cast("Sequence[int]", left or ())


class CancelAnswer(NamedTuple):
    task: Task
    disposition: Disposition
    killed: int = 0  # processes that an ended command had left running, and that were ended now


class OpenTurn(NamedTuple):
    id: str
    notices: Sequence[Notice]


class ThreadCount(NamedTuple):
    """A thread in numbers."""

    id: str
    active: int  # tasks that have not ended
    unread: int  # notices that it is still to be told,
    leased: int  # that a turn holds now,
    parked: int  # and that nobody could be told
    last_event_at: float | None


class Page(NamedTuple):
    """A part of what a query fits, and how much it fits in all."""

    tasks: Sequence[Task]
    total: int
    next: int | None = None  # where the page behind it begins: `Query.before`; None if there is none
    exact: bool = True  # False: there are at least `total`
