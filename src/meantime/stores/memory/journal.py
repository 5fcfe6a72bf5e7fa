"""The events, in commit order."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from meantime.kernel.events import Event


class Journal:
    def __init__(self) -> None:
        self.seq = 0
        self._events: list[Event] = []

    def write(self, event: Event | None) -> int:
        """Returns its sequence number; 0 means that there is no event."""
        if event is None:
            return 0
        self.seq += 1
        self._events.append(replace(event, seq=self.seq))
        return self.seq

    def after(self, seq: int, limit: int) -> Sequence[Event]:
        trimmed = self.seq - len(self._events)  # sequence numbers have no gaps: the place is arithmetic
        start = max(0, seq - trimmed)
        return self._events[start : start + limit]

    def trim(self, keep: int) -> None:
        del self._events[: max(0, len(self._events) - keep)]
