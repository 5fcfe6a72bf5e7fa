"""Processes that run work for the owner of the ledger: their functions live there, and nowhere else."""

from __future__ import annotations

from typing import Protocol

from meantime.kernel.limits import Limits
from meantime.kernel.model import Json, Progress, Task
from meantime.kernel.outcomes import Report

from .runner import Assignment, Context


class Relay(Context, Protocol):
    """A run's context on the owner's side: reports of its work elsewhere are repeated here."""

    @property
    def said(self) -> Progress | None:
        """The progress that was relayed last."""
        ...

    def relay(self, said: Progress | None, emitted: dict[str, Json], session: str | None) -> None:
        """The whole of what was said so far, in place of what was there."""
        ...

    async def relay_event(self, number: int, text: str) -> str:
        """An event of the worker that performs it, which counts its events from 1. Each number is told once,
        even by a later owner. Raises Refused after the end."""
        ...

    def running_for(self, seconds: float) -> None:
        """How long the work has been running, by the clock of the process that performs it."""
        ...

    def relay_deaf(self, is_deaf: bool) -> None:
        """Whether the work was asked to stop and has not asked since it began, so that it will not stop."""
        ...


class LinkedProcesses(Protocol):
    """The connected processes, as the runtime tells them of changes that they would otherwise ask for."""

    def limits_changed(self, limits: Limits) -> None: ...

    def inbox_filled(self, thread: str) -> None:
        """The thread has more to tell than before, or may have."""
        ...


class _Nobody:
    def limits_changed(self, limits: Limits) -> None: ...

    def inbox_filled(self, thread: str) -> None: ...


NOBODY: LinkedProcesses = _Nobody()  # is connected


class Executors(Protocol):
    def may_run(self, executor: str) -> bool:
        """Whether it is connected, or was lost so lately that it may come back."""
        ...

    async def perform(self, assignment: Assignment, context: Relay) -> Report:
        """Has the run performed where its function is. Cancellation asks it to stop; an executor that
        is gone past its grace is a report, too: lost."""
        ...

    def detach(self, task: Task) -> bool:
        """Leaves a run to the next owner of the ledger: `perform` reports `detached`."""
        ...
