"""How often a watch looks at what has states."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from tests.refusing import http_refusal, refusing

from meantime.kernel.model import Json
from meantime.kernel.watches import WatchCursor, WatchSpec
from meantime.ports.clock import sleep as sleep_by
from meantime.runners.watch.findings import Findings
from meantime.runners.watch.log_scan import DEADLINE
from meantime.runners.watch.network_states import UrlState
from meantime.runners.watch.state_watch import (
    FORCED,
    JITTER,
    LAST_LOOK,
    LONGEST,
    MOST_TIMES,
    STOPPING,
    UNDER_WAY,
    Look,
    StateWatch,
)
from meantime.testing import FakeClock

pytestmark = pytest.mark.anyio


class Kept:
    """Findings without a ledger."""

    def __init__(self, **options: object) -> None:
        self.spec = WatchSpec(source="url", of="http://127.0.0.1:1", **options)  # type: ignore[arg-type]
        self.cursor = WatchCursor(state="no answer")

    async def say_trouble(self, text: str) -> None:
        assert not text


class Failing:
    """Nothing answers: the state stays what it was."""

    every = 10.0
    reports = False

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.looks: list[float] = []

    def listen(self, wake: asyncio.Event) -> None: ...

    async def look(self, was: Json) -> Look:
        self.looks.append(self._clock.monotonic())
        return Look("no answer", "no answer", failed=True)

    def close(self) -> None: ...


async def waits(clock: FakeClock, count: int, **options: object) -> list[float]:
    """Seconds between the looks of a watch whose looks all fail."""
    source = Failing(clock)
    watch = StateWatch(cast("Findings", Kept(**options)), source, clock)
    ending = asyncio.ensure_future(watch.ending())
    while len(source.looks) <= count:
        await clock.until(lambda: clock.due_in)
        await clock.advance(clock.due_in[0])
    ending.cancel()
    return [after - before for before, after in zip(source.looks, source.looks[1:], strict=False)][:count]


async def test_looks_that_fail_come_less_and_less_often_up_to_a_limit() -> None:
    found = await waits(FakeClock(), 8)
    expected = [10.0, 20.0, *[MOST_TIMES * 10.0] * 6]
    for wait, wanted in zip(found, expected, strict=True):
        assert wanted * (1 - JITTER) <= wait <= wanted * (1 + JITTER)


async def test_looks_that_fail_come_once_a_minute_at_least_if_they_were_asked_for() -> None:
    assert max(await waits(FakeClock(), 4, every=50.0)) <= LONGEST * (1 + JITTER)


async def test_an_address_that_does_not_answer_has_a_state_and_is_looked_at_as_often_as_others() -> None:
    look = await UrlState("http://127.0.0.1:1/", None).look(None)
    assert (look.state, look.failed) == ("no answer", False)


async def test_an_address_that_refuses_before_it_has_read_the_question_has_answered() -> None:
    with refusing(http_refusal("429 Too Many Requests", b"{}"), reads=10) as server:
        look = await UrlState(f"http://{server.address}/", None).look(None)
    assert look.state == "429"


async def test_watches_that_began_together_do_not_look_together() -> None:
    assert len({tuple(await waits(FakeClock(), 3)) for _ in range(3)}) == 3


async def test_a_failing_look_never_comes_sooner_than_was_asked_for() -> None:
    assert min(await waits(FakeClock(), 3, every=600.0)) > 600.0 - 1e-6


class Slow:
    """A look takes so long; one that is stubborn begins again where it is asked to stop, twice."""

    every = 10.0
    reports = False

    def __init__(self, clock: FakeClock, seconds: float, *, is_stubborn: bool = False) -> None:
        self._clock = clock
        self._seconds = seconds
        self._is_stubborn = is_stubborn
        self.begun = self.ended = 0
        self.stops: list[float] = []

    def listen(self, wake: asyncio.Event) -> None: ...

    async def look(self, was: Json) -> Look:
        self.begun += 1
        while True:
            try:
                await sleep_by(self._clock, self._seconds)
                break
            except asyncio.CancelledError:
                self.stops.append(self._clock.monotonic())
                if not self._is_stubborn or len(self.stops) > 2:  # the end of the test is heard
                    raise
        self.ended += 1
        return Look("no answer", "no answer")

    def close(self) -> None: ...


async def ended_at(clock: FakeClock, source: Slow, deadline: float) -> float:
    """When a watch of it ended."""
    watch = StateWatch(cast("Findings", Kept()), source, clock)
    if deadline:
        clock.call_later(deadline, watch.expire)
    else:
        watch.expire()
    ending = asyncio.ensure_future(watch.ending())
    while not ending.done():
        await clock.until(lambda: ending.done() or clock.due_in)
        if not ending.done():
            await clock.advance(clock.due_in[0])
    assert await ending == (UNDER_WAY if source.begun > source.ended else DEADLINE, "")
    return clock.monotonic()


async def test_a_deadline_ends_a_look_that_is_under_way_and_no_other_one_is_made() -> None:
    clock = FakeClock()
    source = Slow(clock, 600.0)
    assert await ended_at(clock, source, 5.0) == 5.0
    assert (source.begun, source.ended, source.stops) == (1, 0, [5.0])


async def test_a_look_that_does_not_stop_is_forced_and_then_left() -> None:
    clock = FakeClock()
    source = Slow(clock, 600.0, is_stubborn=True)
    assert await ended_at(clock, source, 5.0) == 5.0 + STOPPING + FORCED
    assert (source.begun, source.stops) == (1, [5.0, 5.0 + STOPPING])


async def test_a_deadline_of_nothing_is_one_whole_look() -> None:
    clock = FakeClock()
    source = Slow(clock, 40.0)
    assert await ended_at(clock, source, 0.0) == 40.0
    assert (source.begun, source.ended) == (1, 1)


async def test_the_look_at_the_deadline_is_short_if_there_was_one_before() -> None:
    clock = FakeClock()
    source = Slow(clock, LAST_LOOK - 1.0)
    assert await ended_at(clock, source, 8.0) == 8.0 + LAST_LOOK - 1.0
    assert (source.begun, source.ended) == (2, 2)
    clock = FakeClock()
    source = Slow(clock, LAST_LOOK + 1.0)
    assert await ended_at(clock, source, LAST_LOOK + 2.0) == 2 * LAST_LOOK + 2.0
    assert (source.begun, source.ended) == (2, 1)
