"""The one way in which the suites wait. Only an implementation that fails meets the limit."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

T = TypeVar("T")

PATIENCE = 120.0  # real seconds: no busy machine outlasts them
_LOOK = 0.01  # seconds between two looks


async def within(waiting: Awaitable[T], what: str = "the answer") -> T:
    """Nothing may hang."""
    limit = asyncio.timeout(PATIENCE)
    try:
        async with limit:
            return await waiting
    except TimeoutError:
        assert not limit.expired(), f"not within {PATIENCE:g} s: {what}"
        raise


async def until(condition: Callable[[], Awaitable[T] | T], what: str) -> T:
    """The first true value of the condition, which may be a coroutine function."""
    over = time.monotonic() + PATIENCE
    while not (found := await _value(condition)):
        assert time.monotonic() < over, f"not within {PATIENCE:g} s: {what}"
        await asyncio.sleep(_LOOK)
    return found


async def stays(condition: Callable[[], Awaitable[object]], what: str, seconds: float) -> None:
    over = time.monotonic() + seconds
    while time.monotonic() < over:
        assert await condition(), f"it did not stay so: {what}"
        await asyncio.sleep(_LOOK)


def until_in_thread(condition: Callable[[], object], what: str) -> None:
    over = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < over, f"not within {PATIENCE:g} s: {what}"
        time.sleep(_LOOK)


async def _value(condition: Callable[[], Awaitable[T] | T]) -> T:
    found = condition()
    return cast("T", await found if inspect.isawaitable(found) else found)
