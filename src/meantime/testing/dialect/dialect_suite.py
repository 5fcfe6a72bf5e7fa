"""All checks of the Dialect port, and the one call that runs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from meantime.conversation.dialect_lookup import Wording, dialect_of
from meantime.ports.dialect import Dialect

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
        name = getattr(check, "__name__", repr(check))
        try:
            await check(dialect_of(dialect))
        except Exception as problem:
            raise AssertionError(f"{name}: {problem or type(problem).__name__}") from problem
