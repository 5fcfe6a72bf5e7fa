"""The doctor: looks at everything that a Meantime needs, and says what to do. It changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import agent_checks, home_checks, machine_checks, platform_checks, worker_checks
from .check_row import BAD, OK, WARN, CheckRow, Patient

__all__ = ["BAD", "CHECKS", "OK", "WARN", "CheckRow", "Patient", "examine"]

CHECKS: tuple[Callable[[Patient], Iterator[CheckRow]], ...] = (
    machine_checks.python,
    machine_checks.sqlite,
    machine_checks.extras,
    machine_checks.mcp,
    machine_checks.watch,
    machine_checks.kernel,
    platform_checks.path,
    platform_checks.wsl,
    home_checks.folder,
    home_checks.config,
    agent_checks.agents,
    home_checks.ledger,
    machine_checks.disk,
    machine_checks.descriptors,
    home_checks.daemon,
    worker_checks.carrier,
    worker_checks.worker,
    machine_checks.clock,
)


def examine(patient: Patient) -> Iterator[CheckRow]:
    """A check that itself fails is a row, too: the rest goes on."""
    for check in CHECKS:
        try:
            yield from check(patient)
        except Exception as problem:
            yield CheckRow(check.__name__, BAD, f"could not be looked at: {problem!r}", "Please report this.")
