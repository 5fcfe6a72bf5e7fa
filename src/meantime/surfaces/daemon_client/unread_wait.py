"""Blocking until a conversation has something unread: how an idle agent is woken."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .daemon_client import Daemon, part

STEP = 5.0  # seconds that the daemon is asked to wait at once: as long may a vanished host go unnoticed
SETTLE = 1.0  # seconds: endings that come so close together cost a model one turn, not one each
LONGEST = 60.0  # seconds to settle: an agent is not kept from news for longer
MANY = 200  # active tasks: with more than these the full time is waited, and nobody lists them


class ThreadClient:
    """The tasks to wait for, by id."""

    def __init__(self, daemon: Daemon, id: str) -> None:
        self._daemon = daemon
        self.id = id

    def look(self) -> Any:
        """Its numbers; an unknown thread has none."""
        return self._daemon.get(f"/v1/threads/{part(self.id)}")

    def is_over(self) -> bool:
        """Nothing runs, and everything was told."""
        found = self.look()
        return not (found["active"] or found["unread"] or found["leased"])

    def wake(self, seconds: float) -> bool:
        """Whether there is something unread, and nobody is being told."""
        path = f"/v1/threads/{part(self.id)}/wake"
        return self._daemon.get(path, timeout=round(seconds, 3), patience=seconds + 30) is not None

    def settle(self, seconds: float = SETTLE) -> None:
        """Called once something is unread: gives other tasks `seconds` to end too, so that they are told
        together. Returns at once when no other task is active."""
        seconds = min(seconds, LONGEST)
        active = self.look()["active"] if seconds > 0 else 0
        if active > MANY:
            time.sleep(seconds)
        elif active:
            asked = {"thread": self.id, "until": "all", "timeout": seconds}
            self._daemon.post("/v1/wait", asked, patience=seconds + 30)


def wait_unread(thread: ThreadClient, until: float | None, is_wanted: Callable[[], bool]) -> bool | None:
    """True: there is something unread. False: the time is over, or nobody wants to know any more. None:
    there is nothing left to wait for."""
    while is_wanted():
        left = STEP if until is None else min(STEP, max(0.0, until - time.monotonic()))
        if thread.wake(left):
            return True
        if thread.is_over():
            return None
        if until is not None and time.monotonic() >= until:
            return False
    return False
