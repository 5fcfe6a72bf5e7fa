"""All checks of the Dialect port, and the one call that runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from meantime.conversation.dialect_lookup import Wording, dialect_of
from meantime.ports.dialect import Dialect
from meantime.testing.suite.failed_check import named_after

from . import text_checks, tool_call_checks, tool_schema_checks

Check: TypeAlias = Callable[[Dialect], Awaitable[None]]
DIALECT_CHECKS: tuple[Check, ...] = (
    *text_checks.CHECKS,
    *tool_schema_checks.CHECKS,
    *tool_call_checks.CHECKS,
)


async def exercise_dialect(dialect: Wording) -> None:
    """Runs every check; the first that fails is named in the AssertionError."""
    for check in DIALECT_CHECKS:
        with named_after(check):
            await check(dialect_of(dialect))
