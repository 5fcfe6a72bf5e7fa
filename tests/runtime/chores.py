"""Functions that a second process finds again, because they can be imported."""

from __future__ import annotations

import asyncio
from pathlib import Path


async def forever() -> None:
    await asyncio.Event().wait()


def add(first: int, second: int) -> int:
    return first + second


async def once_or_twice(witness: str) -> str:
    """Writes down that it runs; the first time it never ends, the second time it does."""
    with Path(witness).open("a") as file:  # noqa: ASYNC230  the kill that follows must not lose it
        file.write("ran\n")
    if Path(witness).read_text() == "ran\n":
        await asyncio.Event().wait()
    return "the second time"
