"""The work that the worker performs."""

from __future__ import annotations

import asyncio


async def noop() -> None:
    return None


async def forever() -> None:
    await asyncio.Event().wait()
