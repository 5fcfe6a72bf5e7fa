"""How a program under a guard is waited for, and let go; what speaks to it differs."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import Process


async def wait_ended(process: Process, seconds: float) -> int | None:
    """Its exit code, negative for a signal; None while it runs. (`process.wait()` would also wait for pipes
    that somebody else may hold.)"""
    end = asyncio.get_running_loop().time() + seconds
    while process.returncode is None and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return process.returncode


async def let_go(process: Process, errors: asyncio.Task[None], seconds: float) -> None:
    """After its lifeline was closed: its guard sees to it, TERM, KILL, for all that it ever started. A caller
    that cancels us does not wait for that; the guard goes on.
    """
    try:
        await wait_ended(process, seconds)
        await asyncio.wait([errors], timeout=0.5)
    finally:
        errors.cancel()
        transport = getattr(process, "_transport", None)
        if transport is not None:
            transport.close()
