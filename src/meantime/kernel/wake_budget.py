"""A wake budget for each thread: an agent that is woken, starts something, ends its turn, and is woken by
that again, could loop for ever. After so many rounds it is woken less and less often. Nothing is lost by it,
and whoever takes a turn without having been woken, such as a person who writes, ends it.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct

NO_LIMIT = -1
MOST = 10_000  # threads that are known
FIRST = 1.0  # seconds of the first rest; each round more doubles it


class WakeBudget(Struct, frozen=True):
    """How often a thread may be woken by its own work before each further wake is delayed."""

    rounds: int = 120  # in `seconds`, without a turn that nobody was woken for; -1 is any number
    seconds: float = 300.0
    longest: float = 60.0  # seconds of one rest


class Wakes:
    """All threads. Times are of the monotonic clock."""

    def __init__(self, budget: WakeBudget) -> None:
        self.budget = budget
        self._rounds: dict[str, deque[float]] = {}
        self._started: dict[str, None] = {}  # threads that have started something since they were woken
        self._woken: dict[str, None] = {}  # and those that have taken no turn since

    def started(self, thread: str) -> None:
        if self.budget.rounds != NO_LIMIT:
            self._started[thread] = None
            _bound(self._started)

    def woken(self, thread: str, now: float) -> None:
        """A round is a wake after which something was started: endings of other work are not rounds."""
        self._woken[thread] = None
        _bound(self._woken)
        if thread in self._started:
            del self._started[thread]
            rounds = self._rounds.setdefault(thread, deque(maxlen=self.budget.rounds + 16))
            rounds.append(now)
            _bound(self._rounds)

    def entered(self, thread: str) -> None:
        """A turn is taken. One that nobody was woken for is somebody's own wish."""
        if thread in self._woken:
            del self._woken[thread]
        else:
            self._rounds.pop(thread, None)

    def rest(self, thread: str, now: float) -> float:
        """Seconds until the thread may be woken again; 0 is now."""
        rounds = self._rounds.get(thread)
        if rounds is None:
            return 0.0
        while rounds and rounds[0] <= now - self.budget.seconds:
            rounds.popleft()
        if not rounds:
            del self._rounds[thread]
            return 0.0
        over = len(rounds) - self.budget.rounds
        if over < 0:
            return 0.0
        return max(0.0, rounds[-1] + min(FIRST * 2**over, self.budget.longest) - now)

    def resting(self, now: float) -> list[str]:
        return [thread for thread in list(self._rounds) if self.rest(thread, now) > 0]


def _bound(known: dict[str, Any]) -> None:
    """The oldest goes: it counts anew, at worst."""
    if len(known) > MOST:
        del known[next(iter(known))]
