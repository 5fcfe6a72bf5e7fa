"""wake: which threads are idle with something unread, and which callers wait for that.

Level-triggered: whoever waits is woken while there is something unread and no turn open. A signal
only says "look again", so a missed one costs at most a reconciler's round, never a notice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from meantime.kernel.change import Change
from meantime.kernel.errors import Closed
from meantime.kernel.notice_sources import Draft
from meantime.kernel.wake_budget import WakeBudget, Wakes
from meantime.ports.clock import Alarm, Clock
from meantime.ports.store import Committed, Store

logger = logging.getLogger("meantime")


class Waking:
    def __init__(
        self, store: Store, clock: Clock, budget: WakeBudget, inbox_filled: Callable[[str], object]
    ) -> None:
        """`inbox_filled` is told of threads with more to tell."""
        self._store = store
        self._clock = clock
        self.wakes = Wakes(budget)
        self._alarms: dict[str, Alarm] = {}  # of threads that rest
        self._unread: dict[str, int] = {}
        self._busy: dict[str, int] = {}  # open turns by thread
        self._signals: dict[str, int] = {}  # the newest signal of a thread
        self._newest = 0
        self._changes = 0  # of our own count, to notice those that come while we look
        self._sleepers: dict[str, list[asyncio.Future[None]]] = {}
        self._closed = False
        self._inbox_filled = inbox_filled

    async def refresh(self) -> None:
        """Counts again in the store: whatever went wrong with our own count is mended. Changes while we look
        are looked at again; a store that never holds still is left to the next round.
        """
        for _ in range(3):
            before = self._changes
            found = dict(await self._store.unread())
            if self._changes == before:
                more = [thread for thread, unread in found.items() if unread > self.unread(thread)]
                self._unread = found
                for thread in more:
                    self._inbox_filled(thread)
                return

    def on_commit(self, change: Change, committed: Committed) -> None:
        if change.replaces == 0:
            self.wakes.started(change.task.thread)
        self.count_notices(change.notices)

    def count_notices(self, notices: Sequence[Draft]) -> None:
        for draft in notices:
            if not draft.muted:
                self.count(draft.thread, 0 if draft.joins else 1)
                self.signal(draft.thread)
            if draft.body is not None:  # a thread could be woken by events for ever, as by its own work
                self.wakes.started(draft.thread)

    def count(self, thread: str, change: int) -> None:
        self._changes += 1
        left = self._unread.get(thread, 0) + change
        if left > 0:
            self._unread[thread] = left
        else:
            self._unread.pop(thread, None)
        if change > 0:
            self._inbox_filled(thread)

    def unread(self, thread: str) -> int:
        return self._unread.get(thread, 0)

    def enter(self, thread: str) -> None:
        self.wakes.entered(thread)
        self._busy[thread] = self._busy.get(thread, 0) + 1

    def leave(self, thread: str, *, told: bool) -> None:
        """The idle transition drains again. A turn that told nothing is not followed by the next at
        once, or an agent that forgets its ack would spin: new endings wake it, or the reconciler."""
        left = self._busy[thread] - 1
        if left:
            self._busy[thread] = left
        else:
            del self._busy[thread]
        if told:
            self.signal(thread)
        else:
            self.nudge(thread)

    def attended(self) -> list[str]:
        """Threads that somebody works on or waits for: not abandoned, whatever the clock says."""
        return [*self._busy, *(thread for thread, sleepers in self._sleepers.items() if sleepers)]

    def waiting(self, thread: str) -> int:
        """How many callers wait for a wake of the thread."""
        return len(self._sleepers.get(thread, ()))

    def is_due(self, thread: str) -> bool:
        return thread not in self._busy and self._unread.get(thread, 0) > 0

    def signal(self, thread: str) -> None:
        self._newest += 1
        self._signals[thread] = self._newest
        self.nudge(thread)

    def nudge(self, thread: str) -> None:
        """Lets waiting callers look again; it is not news by itself."""
        for sleeper in self._sleepers.pop(thread, ()):
            if not sleeper.done():
                sleeper.set_result(None)

    async def wait(self, thread: str, seen: int) -> int:
        while True:
            if self._closed:
                raise Closed
            signal = self._signals.get(thread, 0)
            if signal != seen and self.is_due(thread) and not self._rests(thread):
                self.wakes.woken(thread, self._clock.monotonic())
                return signal
            sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._sleepers.setdefault(thread, []).append(sleeper)
            try:
                await sleeper
            except asyncio.CancelledError:
                sleepers = self._sleepers.get(thread, [])
                if sleeper in sleepers:
                    sleepers.remove(sleeper)
                    if not sleepers:
                        del self._sleepers[thread]
                raise

    def _rests(self, thread: str) -> bool:
        """Its wakes are used up: those who wait look again when it has rested."""
        left = self.rests(thread)
        if left <= 0:
            return False
        if thread not in self._alarms:
            logger.warning(
                "Thread %r was woken %d times in %g s and started work each time: it rests for %.0f s. "
                "If that is meant, allow more: [wakes] rounds, or Settings(wakes=WakeBudget(rounds=-1)).",
                thread, self.wakes.budget.rounds, self.wakes.budget.seconds, left,
            )  # fmt: skip
            self._alarms[thread] = self._clock.call_later(left, lambda: self._rested(thread))
        return True

    def _rested(self, thread: str) -> None:
        del self._alarms[thread]
        self.nudge(thread)

    def rests(self, thread: str) -> float:
        """Seconds until it may be woken again."""
        return self.wakes.rest(thread, self._clock.monotonic())

    def resting(self) -> dict[str, float]:
        """Threads that are woken less often than they would be, and for how many seconds yet."""
        now = self._clock.monotonic()
        return {thread: self.wakes.rest(thread, now) for thread in self.wakes.resting(now)}

    async def reconcile(self) -> None:
        """At most every few seconds: every idle thread with something unread is looked at again."""
        await self.refresh()
        for thread in [thread for thread in self._unread if self.is_due(thread)]:
            self.signal(thread)
        quiet = [one for one in self._signals if one not in self._unread and not self._sleepers.get(one)]
        for thread in quiet:
            del self._signals[thread]

    def close(self) -> None:
        """Nobody waits for ever: waiting callers are told that it is closed."""
        self._closed = True
        for alarm in self._alarms.values():
            alarm.cancel()
        for thread in list(self._sleepers):
            self.signal(thread)
