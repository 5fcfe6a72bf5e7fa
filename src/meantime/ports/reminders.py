"""The verbs of reminders: a part of ports.tasks, in a file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from meantime.kernel.schedules import Schedule


class Reminders(Protocol):
    async def remind(
        self,
        thread: str,
        text: str,
        *,
        at: float | None = None,
        delay: float | None = None,
        tool_call_id: str | None = None,
    ) -> Schedule:
        """Tells the thread this text, once, at a time of the wall clock or after so many seconds. Exactly one
        of the two must be given. Once it returned, it survives a crash. A second one for the same tool call
        of the thread is refused, and names the first."""
        ...

    async def schedules(self, thread: str | None, *, limit: int = 100, offset: int = 0) -> Sequence[Schedule]:
        """The reminders that are still to come, soonest first."""
        ...

    async def cancel_schedule(self, id: str, thread: str | None) -> Schedule:
        """A cancelled reminder never comes. Asking twice is harmless; one that has come is Refused."""
        ...
