"""How often a watch looks at what has states."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from meantime.kernel.model import Json
from meantime.kernel.watches import WatchCursor, WatchSpec
from meantime.runners.watch.findings import Findings
from meantime.runners.watch.state_watch import JITTER, LONGEST, Look, StateWatch
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
    expected = [10.0, 20.0, 40.0, 80.0, 160.0, LONGEST, LONGEST, LONGEST]
    for wait, wanted in zip(found, expected, strict=True):
        assert wanted * (1 - JITTER) <= wait <= wanted * (1 + JITTER)


async def test_watches_that_began_together_do_not_look_together() -> None:
    assert len({tuple(await waits(FakeClock(), 3)) for _ in range(3)}) == 3


async def test_a_failing_look_never_comes_sooner_than_was_asked_for() -> None:
    assert min(await waits(FakeClock(), 3, every=600.0)) >= 600.0
