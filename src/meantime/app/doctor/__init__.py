"""The doctor: looks at everything that a Meantime needs, and says what to do. It changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from . import agents, home, machine
from .row import BAD, OK, WARN, Patient, Row

__all__ = ["BAD", "CHECKS", "OK", "WARN", "Patient", "Row", "examine"]

CHECKS: tuple[Callable[[Patient], Iterator[Row]], ...] = (
    machine.python,
    machine.sqlite,
    machine.extras,
    machine.mcp,
    machine.kernel,
    home.folder,
    home.config,
    agents.agents,
    home.ledger,
    machine.disk,
    machine.descriptors,
    home.daemon,
    machine.clock,
)


def examine(patient: Patient) -> Iterator[Row]:
    """A check that itself fails is a row, too: the rest goes on."""
    for check in CHECKS:
        try:
            yield from check(patient)
        except Exception as problem:
            yield Row(check.__name__, BAD, f"could not be looked at: {problem!r}", "Please report this.")
