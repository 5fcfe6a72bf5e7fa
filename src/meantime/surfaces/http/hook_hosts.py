"""The hosts that run our hooks, by conversation: who has asked, and who waits now."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager

from meantime.surfaces.hooks.hook_delivery import Boundary

MOST_KNOWN = 1_000  # conversations that are remembered: the newest


class HookHost:
    """A host that runs our hooks in one conversation."""

    def __init__(self, since: float) -> None:
        self.name = ""
        self.grade = "C"  # B where it shows its transcript: what is there is not told again
        self.since = self.seen = since
        self.waiting = 0  # hooks that wait for something to tell

    @contextmanager
    def attending(self, waits: bool) -> Generator[None]:
        """While a hook asks; one that waits counts as connected."""
        self.waiting += waits
        try:
            yield
        finally:
            self.waiting -= waits


class HookHosts:
    def __init__(self) -> None:
        self._known: OrderedDict[str, HookHost] = OrderedDict()

    def seen(self, at: Boundary, now: float) -> HookHost:
        host = self._known.setdefault(at.thread, HookHost(now))
        self._known.move_to_end(at.thread)
        host.name, host.grade, host.seen = at.host or "hook", "B" if at.transcript else "C", now
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        return host

    def of(self, thread: str) -> HookHost | None:
        return self._known.get(thread)
