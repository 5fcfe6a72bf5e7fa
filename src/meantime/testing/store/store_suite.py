"""Every check, and how to run them all."""

from __future__ import annotations

from collections.abc import Callable

from meantime.ports.store import Store
from meantime.testing.suite.failed_check import named_after

from . import (
    commit_checks,
    event_checks,
    inbox_checks,
    lease_checks,
    list_checks,
    parking_checks,
    retention_checks,
    row_checks,
    schedule_checks,
    search_checks,
    settle_checks,
    transcript_checks,
)
from .store_fixture import Check

STORE_CHECKS: tuple[Check, ...] = (
    *commit_checks.CHECKS,
    *list_checks.CHECKS,
    *search_checks.CHECKS,
    *row_checks.CHECKS,
    *lease_checks.CHECKS,
    *settle_checks.CHECKS,
    *parking_checks.CHECKS,
    *inbox_checks.CHECKS,
    *event_checks.CHECKS,
    *schedule_checks.CHECKS,
    *transcript_checks.CHECKS,
    *retention_checks.CHECKS,
)


async def exercise_store(make: Callable[[], Store]) -> None:
    """Runs every check on a fresh store; the first that fails is named in the AssertionError."""
    for check in STORE_CHECKS:
        store = make()
        await store.open()
        try:
            with named_after(check):
                await check(store)
        finally:
            await store.close()
