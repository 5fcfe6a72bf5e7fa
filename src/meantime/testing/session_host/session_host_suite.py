"""Every check, and how to run them all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

from meantime.ports.session import AgentSettings, SessionHost
from meantime.testing.suite.failed_check import named_after, title_of

from . import ability_checks, turn_checks
from .host_fixture import HostFixture, Middle, Script

Check: TypeAlias = Callable[[HostFixture], Awaitable[None]]
SESSION_HOST_CHECKS: tuple[Check, ...] = (*turn_checks.CHECKS, *ability_checks.CHECKS)


async def exercise_session_host(
    make: Callable[[], SessionHost],
    settings: AgentSettings,
    folder: Path,
    *,
    script: Script | None = None,
    name: str = "agent",
    middle: Middle | None = None,
) -> None:
    """Runs every check on a fresh host; the first that fails is named in the AssertionError.

    settings: of the agent that the host runs, as its configuration has them.
    folder: an empty one, for what the hosts keep.
    script: other prompts, where the agent under test needs them.
    middle: returns when the turn that was just begun is in its middle; the default is to wait a moment.
    """
    for check in SESSION_HOST_CHECKS:
        bench = HostFixture(make, settings, folder / title_of(check), script, name, middle)
        bench.host.check(name, settings)
        try:
            with named_after(check):
                await check(bench)
        finally:
            await bench.host.close()
