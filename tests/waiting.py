"""The one way in which tests wait: for a condition, never for a moment.

The limit is what no busy machine outlasts. Only a defect meets it, and then the failure says what was waited
for and what was there instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

T = TypeVar("T")

LIMIT = 120.0  # seconds of real time, for everything that a test waits for
_LOOK = 0.01  # seconds between two looks
_SHOWN = 4_000  # characters of what was there


def until(
    condition: Callable[[], T | None],
    what: str,
    there: Callable[[], object] | None = None,
    *,
    limit: float = LIMIT,
) -> T:
    """The first true value of the condition.

    `what` is waited for, as a clause: "the task has ended". `there` returns what a failure shows; without
    it a failure shows the last value of the condition. `limit` is longer for a whole story, and
    shorter only for what cannot come, because a planted defect or a failing disk prevents it.
    """
    deadline = time.monotonic() + limit
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(_failure(what, found if there is None else there(), limit))
        time.sleep(_LOOK)
    return found


async def until_async(
    condition: Callable[[], Awaitable[T | None] | T | None],
    what: str,
    there: Callable[[], object] | None = None,
    *,
    limit: float = LIMIT,
) -> T:
    """As `until`, without blocking the event loop. The condition and `there` may be coroutine functions."""
    deadline = time.monotonic() + limit
    while not (found := await _value(condition)):
        if time.monotonic() > deadline:
            raise AssertionError(_failure(what, found if there is None else await _value(there), limit))
        await asyncio.sleep(_LOOK)
    return found


def stays(condition: Callable[[], object], what: str, seconds: float = 0.3) -> None:
    """Fails as soon as the condition is false within these seconds: for what must not happen. A busy machine
    can hide a defect from it, and cannot make it fail."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert condition(), f"it did not stay so: {what}"
        time.sleep(_LOOK)


async def stays_async(condition: Callable[[], object], what: str, seconds: float = 0.3) -> None:
    """As `stays`, without blocking the event loop. The condition may be a coroutine function."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert await _value(condition), f"it did not stay so: {what}"
        await asyncio.sleep(_LOOK)


def pause(seconds: float, why: str) -> None:
    """Time that is itself part of a scenario: work that takes a moment, a kill at a random moment. Nothing
    may be asserted because of it."""
    assert why
    time.sleep(seconds)


async def pause_async(seconds: float, why: str) -> None:
    """As `pause`, without blocking the event loop."""
    assert why
    await asyncio.sleep(seconds)


async def _value(function: Callable[[], Awaitable[T] | T]) -> T:
    found = function()
    return await found if isinstance(found, Awaitable) else cast("T", found)


def _failure(what: str, there: object, limit: float) -> str:
    text = there if isinstance(there, str) else repr(there)
    shown = text if len(text) <= _SHOWN else f"…{text[-_SHOWN:]}"
    return f"waited {limit:g} s for this: {what}\nwhat was there: {shown}"
