"""The protocol of seed 003: what a plugin has to offer so that its tools can run in the background."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Protocol, runtime_checkable


class TaskStatus(Enum):
    """Status of a background task."""

    PENDING = "pending"  # Queued but not started
    RUNNING = "running"  # Currently executing
    COMPLETED = "completed"  # Finished successfully
    FAILED = "failed"  # Finished with error
    CANCELLED = "cancelled"  # Cancelled before completion
    TIMEOUT = "timeout"  # Exceeded time limit


@dataclass
class TaskHandle:
    """Handle returned when a task is started in background."""

    task_id: str
    plugin_name: str
    tool_name: str
    created_at: datetime
    estimated_duration_seconds: float | None = None
    metadata: dict[str, Any] | None = None


@dataclass
class TaskResult:
    """Result of a completed background task."""

    task_id: str
    status: TaskStatus
    result: Any | None = None  # The actual result if completed; of our own plugins also a partial one
    error: str | None = None  # Error message if failed
    started_at: datetime | None = None
    completed_at: datetime | None = None
    duration_seconds: float | None = None


@runtime_checkable
class BackgroundCapable(Protocol):
    """The required methods of a plugin. `RunsInBackground` gives all of it to any plugin; one that brings its
    own is as welcome."""

    def supports_background(self, tool_name: str) -> bool:
        """Whether this tool can be executed in the background; a quick lookup may not want to be."""
        ...

    def start_background(
        self, tool_name: str, arguments: dict[str, Any], timeout_seconds: float | None = None
    ) -> TaskHandle:
        """Starts the tool and returns at once, with the id for later checks.

        Raises ValueError if the tool doesn't support background execution, RuntimeError if the task
        couldn't be started."""
        ...

    def get_status(self, task_id: str) -> TaskStatus:
        """The status now. Raises KeyError if the id is not found."""
        ...

    def get_result(self, task_id: str, wait: bool = False) -> TaskResult:
        """The state now, with the result or the error; `wait` blocks until the task has ended.

        Raises KeyError if the id is not found."""
        ...

    def cancel(self, task_id: str) -> bool:
        """True if the task was cancelled or already done, False if it could not be stopped.

        Raises KeyError if the id is not found."""
        ...


@runtime_checkable
class BackgroundExtras(Protocol):
    """The optional methods of a plugin. Each method is looked for on its own; without the first and
    the last, its tools are never sent to the background by themselves."""

    def get_auto_background_threshold(self, tool_name: str) -> float | None:
        """Seconds after which a call goes on in the background; None: never by itself."""
        ...

    def estimate_duration(self, tool_name: str, arguments: dict[str, Any]) -> float | None:
        """How many seconds it may take, or None if that is unknown."""
        ...

    def list_tasks(self) -> list[TaskHandle]:
        """All active (pending or running) tasks of this plugin."""
        ...

    def cleanup_completed(self, max_age_seconds: float = 3600) -> int:
        """Removes completed tasks older than this, and returns how many."""
        ...

    def register_running_task(
        self, future: Future[Any], tool_name: str, arguments: dict[str, Any]
    ) -> TaskHandle:
        """Tracks a future that is executing already: a call that exceeded its threshold."""
        ...
