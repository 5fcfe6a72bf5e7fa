"""Every check, and how to run them all."""

from __future__ import annotations

from collections.abc import Callable

from meantime.ports.store import Store

from . import committing, forgetting, keeping, leasing, listing, parking, searching, settling
from .bench import Check

STORE_CHECKS: tuple[Check, ...] = (
    *committing.CHECKS,
    *listing.CHECKS,
    *searching.CHECKS,
    *leasing.CHECKS,
    *settling.CHECKS,
    *parking.CHECKS,
    *keeping.CHECKS,
    *forgetting.CHECKS,
)


async def exercise_store(make: Callable[[], Store]) -> None:
    """Runs every check on a fresh store; the first that fails is named in the AssertionError."""
    for check in STORE_CHECKS:
        name = getattr(check, "__name__", repr(check))
        store = make()
        await store.open()
        try:
            await check(store)
        except Exception as problem:
            raise AssertionError(f"{name}: {problem or type(problem).__name__}") from problem
        finally:
            await store.close()
