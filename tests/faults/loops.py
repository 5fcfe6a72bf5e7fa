"""A seeded event loop: tasks take their steps in an order that a random generator chooses.

Plain callbacks keep their order, and no task overtakes a callback that was scheduled before it:
asyncio promises both. A task may only come later, as if its code had one more `await` in it.
Time is virtual: when nothing is ready, the clock goes to its next alarm.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Any

from .clock import FaultClock

LONG = 7_200.0  # virtual seconds; the longest wait of our own is an hour
ROUNDS = 200_000  # of the loop; a scenario takes some thousands


class Stuck(BaseException):
    """Nothing can happen any more, or two virtual hours were not enough."""


class SeededLoop(asyncio.SelectorEventLoop):
    def __init__(self, seed: int, clock: FaultClock) -> None:
        super().__init__()
        self._rng = random.Random(seed)
        self.clock = clock
        self._held: list[Any] = []
        self._rounds = 0
        self.until = clock.monotonic() + LONG
        self.set_exception_handler(lambda loop, context: None)

    @property
    def idle(self) -> bool:
        return not self._ready and not self._held  # type: ignore[attr-defined]

    def _run_once(self) -> None:
        ready = self._ready  # type: ignore[attr-defined]
        self._rounds += 1
        if self._rounds > ROUNDS:
            raise Stuck(f"{ROUNDS} rounds of the loop, and it is not over")
        if not ready and not self._held and not self._stopping:  # type: ignore[attr-defined]
            self._pass_time()
        handles, late = [*self._held, *ready], []
        self._held = []
        ready.clear()
        for handle in handles:
            if not isinstance(getattr(handle._callback, "__self__", None), asyncio.Task):
                ready.append(handle)
                continue
            late.append(handle)
            while late and self._rng.random() < 0.3:
                ready.append(late.pop(self._rng.randrange(len(late))))
        self._rng.shuffle(late)
        keep = self._rng.randrange(len(late) + 1) if late and ready else 0
        self._held = late[:keep]
        ready.extend(late[keep:])
        super()._run_once()  # type: ignore[misc]

    def _pass_time(self) -> None:
        while not self._ready:  # type: ignore[attr-defined]
            if self.clock.monotonic() > self.until:
                raise Stuck("two virtual hours have passed, and it is not over")
            if not self.clock.ring():
                raise Stuck("nothing is ready and no alarm is set")


def leave(loop: asyncio.AbstractEventLoop) -> None:
    """Ends what is left on a loop, without a word, and closes it."""
    pending = asyncio.all_tasks(loop)
    for task in pending:
        task.cancel()
    loop._rounds = 0  # type: ignore[attr-defined]
    with contextlib.suppress(Stuck):
        if pending:
            loop.run_until_complete(asyncio.wait(pending))
    loop.close()
