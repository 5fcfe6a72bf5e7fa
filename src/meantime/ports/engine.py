"""Where runs execute: today in the process that owns the ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from meantime.kernel.model import Task
from meantime.kernel.outcomes import Report

from .runner import Assignment, Context, LastingRunner, Runner


class Engine(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def runner(self, kind: str) -> Runner:
        """The runner for a kind of work; InvalidInput, with the kinds there are, if there is none."""
        ...

    def lasting(self) -> Sequence[LastingRunner]:
        """The runners whose work keeps running when we are gone."""
        ...

    def perform(self, assignment: Assignment, context: Context) -> Awaitable[Report]:
        """Performs one run and returns its report, once. Every way in which work can end is a
        report, also that its asyncio task was cancelled by itself or with its loop."""
        ...

    def stop(self, task: Task) -> None:
        """Asks a run to stop; asking again is harmless, and so is asking one that has ended."""
        ...
