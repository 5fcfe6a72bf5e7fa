"""The rules for a thread's listing, and for leaving the ledger. Never what was not told."""

from __future__ import annotations

from msgspec import Struct


class Retention(Struct, frozen=True):
    """How much stays in the listings and in the ledger, and for how long. An untold task always stays."""

    hot: int = 20  # ended tasks that a thread lists; older ones still answer get
    history_seconds: float = 30 * 86_400.0  # how long told endings stay in the ledger
    history_tasks: int = 200_000  # and how many
    journal_events: int = 100_000
    unclaimed_seconds: float = 7 * 86_400.0  # after this, an unclaimed thread's notices are parked
