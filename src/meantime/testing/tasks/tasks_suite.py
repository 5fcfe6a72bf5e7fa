"""Every check, and how to run them all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from meantime.ports.tasks import Tasks
from meantime.testing.suite.failed_check import named_after

from . import call_checks, cancel_checks, command_checks, delivery_checks, query_checks, start_checks
from .sample_work import Check

TASKS_CHECKS: tuple[Check, ...] = (
    *start_checks.CHECKS,
    *call_checks.CHECKS,
    *query_checks.CHECKS,
    *command_checks.CHECKS,
    *cancel_checks.CHECKS,
    *delivery_checks.CHECKS,
)


async def exercise_tasks(make: Callable[[], AbstractAsyncContextManager[Tasks]]) -> None:
    """Runs every check on a fresh implementation; the first that fails is named in the AssertionError."""
    for check in TASKS_CHECKS:
        with named_after(check):
            async with make() as tasks:
                await check(tasks)
