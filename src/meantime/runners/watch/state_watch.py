"""A watch of something that has states: it looks, compares with the last state seen, and tells of changes."""

from __future__ import annotations

import asyncio
import random
from typing import NamedTuple, Protocol

from meantime.kernel.event_notices import one
from meantime.kernel.model import Json
from meantime.kernel.watches import counted, until_words
from meantime.ports.clock import Clock, sleep

from .expressions import Exactly, Expression, expression
from .findings import Findings
from .log_scan import DEADLINE

UNDER_WAY = f"{DEADLINE}, while a look was under way"
JITTER = 0.1  # of the time between two looks: watches that began together do not look together for ever
WANTED = {"port": Exactly("open")}  # what is told where no `match` says it
BACK_OFF, MOST_TIMES, LONGEST = 2.0, 3.0, 60.0  # between looks that fail: times `every`, and seconds, at most
LAST_LOOK = 5.0  # seconds of the look that is made at the deadline, if there was one before
STOPPING, FORCED = 2.0, 5.0  # seconds that a look may take to stop, and then those that it may be forced


class Look(NamedTuple):
    """One look at what is watched."""

    state: Json  # compared with the last one, and kept as the cursor
    text: str  # what is told if it has changed
    matched: str = ""  # what the expressions are searched in, if not the text
    over: str = ""  # why there is nothing more to watch
    failed: bool = False  # it could not be looked at: the next look comes later
    trouble: str = ""  # told once, until a look goes well: nothing is known of the state
    late: bool = False  # it was given up on before it came
    wanted: bool | None = None  # whether it is told, if the expressions do not say that
    ends: bool | None = None  # whether it ends the watch, in the same way


class StateSource(Protocol):
    every: float  # seconds between two looks, if the watch says nothing else
    reports: bool  # it wakes for every change: looks in between find nothing

    async def look(self, was: Json) -> Look:
        """`was` is the last state seen; None for the first look."""
        ...

    def listen(self, wake: asyncio.Event) -> None:
        """Sets the event when it should be looked again, as far as that can be known."""
        ...

    def close(self) -> None: ...


class RunningWatch(Protocol):
    """One watch that looks."""

    findings: Findings

    async def ending(self) -> tuple[str, str]:
        """Why it is over, and what its ending tells of."""
        ...

    def expire(self) -> None:
        """Its deadline has come."""
        ...

    async def leave(self) -> None:
        """Keeps how far it has looked, for the next owner."""
        ...

    def close(self) -> None: ...


class LookTimes:
    """When a watch looks again: when it is woken, but not more often than it was asked to."""

    def __init__(self, clock: Clock, every: float | None) -> None:
        self.wake = asyncio.Event()
        self.is_due = False
        self.due = asyncio.Event()  # the same, to wait for
        self._rested = asyncio.Event()
        self._clock = clock
        self._every = every or 0.0

    async def pause(self, seconds: float) -> None:
        """Until it is woken, or so long; then until `every` is over. A deadline waits for neither."""
        began = self._clock.monotonic()
        await self.until(self.wake, seconds)
        left = began + self._every - self._clock.monotonic()
        if left > 0 and not self.is_due:
            self._rested.clear()
            await self.until(self._rested, left)

    async def until(self, event: asyncio.Event, seconds: float) -> None:
        alarm = self._clock.call_later(seconds, event.set)
        try:
            await event.wait()
        finally:
            alarm.cancel()

    def expire(self) -> None:
        """The deadline has come."""
        self.is_due = True
        self.due.set()
        self.wake.set()
        self._rested.set()


class StateWatch:
    def __init__(
        self,
        findings: Findings,
        source: StateSource,
        clock: Clock,
        match: str | None = None,
        *,
        is_quick: bool = False,
    ) -> None:
        """`match`: in place of the watch's own, where that is for something else than the state. `is_quick`:
        a look ends soon, and says what it could not look at, so a deadline waits for it."""
        spec = findings.spec
        self.findings = findings
        self._source = source
        self._clock = clock
        self._is_quick = is_quick
        wanted = spec.match if match is None else match
        self._match: Expression | Exactly | None = expression(wanted) if wanted else WANTED.get(spec.source)
        self._until = expression(spec.until, "until") if spec.until else None
        self._times = LookTimes(clock, spec.every)

    async def ending(self) -> tuple[str, str]:
        self._source.listen(self._times.wake)
        wait, is_first = 0.0, True
        while True:
            self._times.wake.clear()
            look = await self._look(is_first=is_first)
            is_first, is_last = False, self._times.is_due
            if look is None:
                return UNDER_WAY, ""
            if look.trouble or not look.late:  # a file system that is slow for each look is told of once
                await self.findings.say_trouble(look.trouble)
            if not look.trouble and (ended := await self._judge(look)) is not None:
                return ended
            if look.over or is_last:
                return look.over or DEADLINE, ""
            every = self._every()
            most = max(every, min(LONGEST, MOST_TIMES * every))
            wait = min(most, max(every, wait * BACK_OFF)) if look.failed else every
            await self._times.pause(wait * (1 + JITTER * (2 * random.random() - 1)))

    async def _look(self, *, is_first: bool) -> Look | None:
        """None: the deadline came before the look was over. A last look is made at the deadline: if it is the
        first one, it takes as long as it likes."""
        look = self._source.look(self.findings.cursor.state)
        if self._is_quick or (is_first and self._times.is_due):
            return await look
        given_up = sleep(self._clock, LAST_LOOK) if self._times.is_due else self._times.due.wait()
        looking, giving_up = asyncio.ensure_future(look), asyncio.ensure_future(given_up)
        try:
            await asyncio.wait({looking, giving_up}, return_when=asyncio.FIRST_COMPLETED)
            return looking.result() if looking.done() else None
        finally:
            giving_up.cancel()
            await self._stop(looking)

    async def _stop(self, looking: asyncio.Future[Look]) -> None:
        """The first request stops a command that a look runs, the second one forces it."""
        over = asyncio.Event()

        def end(_: object) -> None:
            over.set()
            if not looking.cancelled():
                looking.exception()  # nobody may be waiting for it any more

        looking.add_done_callback(end)
        for seconds in (STOPPING, FORCED):
            if looking.done():
                return
            looking.cancel()
            over.clear()
            try:
                await self._times.until(over, seconds)
            except asyncio.CancelledError:
                looking.cancel()
                raise

    def _every(self) -> float:
        asked, own = self.findings.spec.every, self._source.every
        return asked or own if not self._source.reports else max(asked or 0.0, own)

    async def _judge(self, look: Look) -> tuple[str, str] | None:
        """Tells of a state that is new and wanted. An ending, if it ends the watch."""
        cursor = self.findings.cursor
        if look.state == cursor.state:
            return None
        if self._is_last(look):
            return until_words(self.findings.spec), look.text
        if not self._is_wanted(look):
            await self.findings.save(state=look.state)
            return None
        if self.findings.spec.once or look.over:
            self.findings.cursor = counted(cursor, 1)
            return look.over, look.text
        await self.findings.tell(one(look.text), counted(cursor, 1, state=look.state))
        return None

    def _is_last(self, look: Look) -> bool:
        if look.ends is not None:
            return look.ends
        return self._until is not None and self._until.fits(look.matched or look.text)

    def _is_wanted(self, look: Look) -> bool:
        if look.wanted is not None:
            return look.wanted
        if self._match is not None:
            return self._match.fits(look.matched or look.text)
        return self.findings.cursor.state is not None

    def expire(self) -> None:
        self._times.expire()

    async def leave(self) -> None:
        """Every state that was seen is kept already."""

    def close(self) -> None:
        self._source.close()


def changed(was: Json, now: str, detail: str = "") -> str:
    """The words of a change from one state to another; the state alone where only the detail is new."""
    head = f"{was} → {now}" if was not in (None, now) else now
    return f"{head}\n{detail}" if detail else head
