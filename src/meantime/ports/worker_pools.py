"""Workers on other machines, as the runtime and the runners see them.

`runtime/admit.py` offers a task to a pool; a worker claims it; the commit of the claim starts it, and its
runner (`runners/placed.py`) has it performed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

from msgspec import Struct

from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Chunk, Claim, Task
from meantime.kernel.outcomes import Report

from .executors import Relay
from .runner import Assignment, SpeakingRunner

Fence: TypeAlias = tuple[int, int]  # number and attempt of a run


class PlacedTasks(Protocol):
    """The ledger, as far as workers change it."""

    async def claimed(self, id: str, fence: Fence, claim: Claim) -> bool:
        """Records that a queued task was started by this claim. False: it is not queued any more, or it is
        another run of it."""
        ...

    async def keep_late(self, id: str, fence: Fence, report: Report) -> None:
        """The report of a run that was given up: its ending stays as it is."""
        ...

    def set_slots(self, place: str, slots: int) -> None:
        """The slots that a pool has now."""
        ...


class CurrentTasks(Protocol):
    async def current(self, id: str) -> Task:
        """The task as it is on record. Raises NotFound."""
        ...


class Placing(Protocol):
    """The offers to pools."""

    @property
    def public_key(self) -> str:
        """The key that workers pin; empty without a carrier."""
        ...

    def check(self, place: str) -> str:
        """The place as a task keeps it: empty is here. Raises InvalidInput for one that there is not."""
        ...

    def join(self, placed: PlacedTasks, record: CurrentTasks) -> None:
        """Before anything is offered."""
        ...

    def offer(self, task: Task) -> None:
        """The task is queued, and any worker of its pool may claim it."""
        ...

    def recorded(self, task: Task) -> None:
        """A change of a placed task is on record: it ended, or another attempt of it is queued."""
        ...

    def about(self) -> tuple[WorkerAbout, ...]:
        """For people: the workers that reported lately."""
        ...

    def counters(self) -> Mapping[str, int]: ...


class WorkerAbout(Struct, frozen=True):
    name: str
    host: str
    pool: str
    slots: int
    running: int
    version: str
    silent: float  # seconds since its last message
    labels: dict[str, str] = {}
    draining: bool = False
    skew: float = 0.0  # seconds that its clock is ahead of ours


class _Here:
    """No carrier is configured: every task runs here."""

    public_key = ""

    def check(self, place: str) -> str:
        if place in ("", "here"):
            return ""
        raise InvalidInput(
            f"There are no workers, so nothing can be placed at {place!r}.",
            hint="Start the daemon with `meantime up --carrier local`, or configure [engine] carrier. "
            "Or leave place out.",
            code="no_carrier",
        )

    def join(self, placed: PlacedTasks, record: CurrentTasks) -> None: ...

    def offer(self, task: Task) -> None:
        raise AssertionError("nothing is placed without a carrier")

    def recorded(self, task: Task) -> None: ...

    def about(self) -> tuple[WorkerAbout, ...]:
        return ()

    def counters(self) -> Mapping[str, int]:
        return {}


HERE: Placing = _Here()


class PlacedWork(Protocol):
    """The runs that workers have claimed."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def perform(self, assignment: Assignment, context: Relay, files: Mapping[str, Path]) -> Report:
        """Follows a claimed run to its end. Cancellation asks it to stop. `files`: where the files of its
        output are put, by the endings of their names, before the worker forgets them."""
        ...

    def detach(self, task: Task) -> bool:
        """Leaves a run to the next owner of the ledger: `perform` reports `detached`."""
        ...

    async def read(self, task: Task, stream: str, offset: int, most: int) -> Chunk: ...

    async def tail(self, task: Task, stream: str, lines: int, most: int) -> Chunk: ...

    async def changed(self, task: Task, stream: str, seen: int) -> bool: ...

    async def write(self, task: Task, data: bytes, *, eof: bool) -> None: ...


class FilingRunner(SpeakingRunner, Protocol):
    """A speaking runner whose output is in files, which can be copied to another machine."""

    def output_files(self, task: Task) -> Mapping[str, Path]:
        """Every file that there may be, by the ending of its name."""
        ...
