"""Every check of a framework's Talk, and how to run them all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

from meantime.testing.suite.failed_check import named_after

from .option_checks import CHECKS as OPTION_CHECKS
from .talk_checks import CHECKS
from .talk_site import TalkFixture, TalkSite
from .tool_error_checks import CHECKS as ERROR_CHECKS

Check: TypeAlias = Callable[[TalkFixture], Awaitable[None]]

TALK_CHECKS: tuple[Check, ...] = (*CHECKS, *ERROR_CHECKS, *OPTION_CHECKS)


async def exercise_talk(make: Callable[[], AbstractAsyncContextManager[TalkSite]]) -> None:
    """Runs every check on a fresh site; the first that fails is named in the AssertionError.

    Args:
        make: An async context manager that gives a site: a ledger, and an agent with a scripted model.
    """
    for check in TALK_CHECKS:
        with named_after(check):
            async with make() as site:
                await check(TalkFixture(site))
