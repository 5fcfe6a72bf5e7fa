"""Every check of the Carrier port, and how to run them all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from . import message_checks, outage_checks, queue_checks
from .carrier_site import CarrierSite

Check: TypeAlias = Callable[[CarrierSite], Awaitable[None]]

CARRIER_CHECKS: tuple[Check, ...] = (*queue_checks.CHECKS, *message_checks.CHECKS, *outage_checks.CHECKS)


async def exercise_carrier(make: Callable[[], AbstractAsyncContextManager[CarrierSite]]) -> None:
    """Runs every check on a fresh site; the first that fails is named in the AssertionError.

    Args:
        make: An async context manager that starts a server, gives its site, and stops the server.
    """
    for check in CARRIER_CHECKS:
        name = getattr(check, "__name__", repr(check))
        async with make() as site:
            try:
                await check(site)
            except Exception as problem:
                raise AssertionError(f"{name}: {problem or type(problem).__name__}") from problem
