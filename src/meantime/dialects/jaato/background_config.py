"""The configuration of seed 003. Every field is enforced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from meantime.kernel.constraints import LIMIT
from meantime.kernel.errors import InvalidInput
from meantime.kernel.timeouts import check as check_timeout
from meantime.kernel.timeouts import check_age

NO_LIMIT = -1


@dataclass
class BackgroundConfig:
    """Configuration for background task processing."""

    # Maximum concurrent background tasks across all plugins; -1 is no limit
    max_concurrent_tasks: int = 10

    # Default timeout for background tasks (seconds); -1 is none
    default_timeout_seconds: float = 300.0

    # Auto-cleanup completed tasks after this duration
    completed_task_retention_seconds: float = 3600.0

    # Threshold above which model should consider backgrounding
    background_threshold_seconds: float = 10.0

    def __post_init__(self) -> None:
        LIMIT(self.max_concurrent_tasks, "max_concurrent_tasks")
        check_timeout(self.default_timeout_seconds)
        check_age(self.completed_task_retention_seconds)
        check_threshold(self.background_threshold_seconds, "background_threshold_seconds")


def check_threshold(seconds: Any, whose: str) -> float | None:
    """As it was given: the texts show it as its plugin wrote it."""
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= 1e10:
        raise InvalidInput(
            f"{whose} gives {seconds!r} as a threshold.", hint="Give seconds from 0 up, or None for never."
        )
    return seconds
