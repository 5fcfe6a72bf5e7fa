"""Tools of wrapped servers that usually take longer than their threshold: nobody need wait for it once more.

Every answered call of a tool that somebody chose counts, in the foreground and in the background. Before a
daemon has seen enough of them the ledger counts, which has the slow ones only; a call that goes to the
background at once is measured like any other, so a wrong guess corrects itself."""

from __future__ import annotations

from collections.abc import Callable

from meantime.kernel.estimates import Estimates, Key, Usual

ENOUGH = 3  # calls of a tool, below which nothing is concluded
MOST_NAME = 100  # characters, as in kernel/estimates.py


class LearnedDurations:
    """`history` is what is known from the ledger."""

    def __init__(self, history: Callable[[Key], Usual | None]) -> None:
        self._history = history
        self._seen = Estimates()

    def note(self, name: str, seconds: float) -> None:
        self._seen.learn(_key(name), seconds)

    def usual(self, name: str) -> float | None:
        """Seconds that a call of `server/tool` usually takes; None while too few are known."""
        for known in (self._seen.of(_key(name)), self._history(_key(name))):
            if known is not None and known.runs >= ENOUGH:
                return known.seconds
        return None


def _key(name: str) -> Key:
    return ("tool", name[:MOST_NAME])
