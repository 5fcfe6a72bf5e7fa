"""Batch: tasks of a thread that are handed off together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from meantime.kernel.argument_checks import check_all, shown
from meantime.kernel.errors import InvalidInput
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import BatchCount, Task
from meantime.kernel.plain_text import plain
from meantime.kernel.work import Orderable
from meantime.ports.tasks import CancelAnswer, Tasks

from .handle import Handle, Until

T = TypeVar("T")
MOST = 1_000  # tasks that are listed


def statuses_of(status: str | Iterable[str] | None) -> frozenset[Status] | None:
    """None lists active tasks; "all" lists everything; otherwise one status or several."""
    if status is None:
        return None
    names = [plain(status)] if isinstance(status, str) else check_all(status, str, "status")
    if names == ["all"]:
        return frozenset(Status)
    try:
        return frozenset(Status(name) for name in names)
    except ValueError:
        known = ", ".join(Status)
        raise InvalidInput(
            f"{shown(names)} names a status that is unknown.", hint=f"Use 'all' or: {known}."
        ) from None


class Batch:
    """Tasks handed off together: n of m."""

    def __init__(
        self, start: Callable[..., Awaitable[Handle[Any]]], tasks: Tasks, thread: str, id: str
    ) -> None:
        self._start = start
        self._tasks = tasks
        self._thread = thread
        self.id = id

    async def start(self, work: Orderable[T], **options: Any) -> Handle[T]:
        """Hands work off as a part of this batch.

        work: a `Call`, `Shell`, `Tool`, `Agent` or `Watch`.
        options: those of `Thread.start`, except `batch`.
        """
        return await self._start(work, batch=self.id, **options)

    async def count(self) -> BatchCount:
        """How many tasks of this batch have ended, and how many there are."""
        return await self._tasks.batch(self.id, self._thread)

    async def list(self, status: str | Iterable[str] | None = "all") -> Sequence[Task]:
        """The tasks of this batch, newest first: all of them, or those of the statuses that you name."""
        return await self._tasks.list(self._thread, statuses_of(status), batch=self.id, limit=MOST)

    async def wait(self, *, until: Until = "all", timeout: float | None = None) -> Sequence[Task]:
        """Waits until all or any of the batch's tasks have ended. Returns them in the order of their start.

        until: "all" or "any".
        timeout: the most seconds to wait; None waits for ever. Tasks that have not ended are returned as
            they are.
        """
        ids = [task.id for task in reversed(await self.list())]
        return await self._tasks.wait(ids, self._thread, until=until, timeout=timeout)

    async def cancel(self, *, by: str = "agent") -> Sequence[CancelAnswer]:
        """Asks every active task of this batch to stop; `by` says who asks."""
        return await self._tasks.cancel_all(self._thread, batch=self.id, by=by)

    async def clear(self) -> int:
        """Hides the ended tasks of this batch from listings. Returns how many."""
        return await self._tasks.clear(self._thread, None, batch=self.id)
