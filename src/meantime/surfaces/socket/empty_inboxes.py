"""Connected processes that know an inbox to be empty, so that they need not open a turn to find out.

A turn that finds nothing says so to its client, and the client is told when that may be over. Frames of one
connection arrive in order: whatever was recorded before an answer was sent is known when the answer is there.
"""

from __future__ import annotations

from typing import Any

from meantime.link.frame_connection import Wire
from meantime.link.frames import InboxFrame

MOST = 1_000  # threads that one connection knows to be empty


class EmptyInboxes:
    def __init__(self) -> None:
        self._wires: dict[str, set[Wire[Any]]] = {}  # by thread
        self._threads: dict[Wire[Any], dict[str, None]] = {}  # the other way round; told last comes last

    def tell_empty(self, thread: str, wire: Wire[Any]) -> None:
        """After a turn that found nothing."""
        known = self._threads.setdefault(wire, {})
        known[thread] = None
        self._wires.setdefault(thread, set()).add(wire)
        wire.send(InboxFrame(thread, is_empty=True))
        if len(known) > MOST:
            self._take_back(next(iter(known)), wire)

    def tell_filled(self, thread: str) -> None:
        """There is something to tell, or there may be."""
        for wire in list(self._wires.get(thread, ())):
            self._take_back(thread, wire)

    def _take_back(self, thread: str, wire: Wire[Any]) -> None:
        del self._threads[wire][thread]
        self._forget(thread, wire)
        wire.send(InboxFrame(thread, is_empty=False))

    def leave(self, wire: Wire[Any]) -> None:
        """The connection is lost. The next one knows nothing, and asks."""
        for thread in self._threads.pop(wire, {}):
            self._forget(thread, wire)

    def _forget(self, thread: str, wire: Wire[Any]) -> None:
        wires = self._wires[thread]
        wires.discard(wire)
        if not wires:
            del self._wires[thread]
