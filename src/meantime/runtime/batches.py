"""batches: n of m, kept in memory for whatever is open, so that telling never counts history."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from meantime.kernel.change import Change
from meantime.kernel.ids import ENTROPY, batch_id, check_id
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import BatchCount, Task
from meantime.kernel.notices import Notice
from meantime.ports.store import Committed

from .entropy import entropy
from .record import Record

KEPT = 1_000  # batches remembered; an older one is counted in the store when somebody asks


class Batches:
    def __init__(self, record: Record) -> None:
        self._record = record
        self._counts: OrderedDict[str, BatchCount] = OrderedDict()
        self._open: dict[str, str] = {}  # by thread: the batch that work without one joins

    async def recover(self, active: Iterable[Task]) -> None:
        for task in active:
            await self._know(task.batch)
            self._open[task.thread] = task.batch

    async def choose(self, thread: str, asked: str | None) -> str:
        """The batch asked for; else the thread's open one, where something is active; else a new one."""
        if asked is not None:
            await self._know(check_id(asked, "batch"))
            return asked
        batch = self._open.get(thread)
        if batch is not None:
            count = self._counts[batch]
            if count.active or not count.total:  # not yet committed counts as open
                return batch
        batch = batch_id(entropy(ENTROPY))
        self._remember(BatchCount(batch, 0, 0))
        self._open[thread] = batch
        return batch

    async def _know(self, batch: str) -> None:
        """Before anything of ours is on its way to it: afterwards we count along."""
        if batch not in self._counts:
            self._remember(await self._record.store.batch(batch) or BatchCount(batch, 0, 0))

    def _remember(self, count: BatchCount) -> None:
        self._counts[count.id] = count
        while len(self._counts) > KEPT:
            oldest = next(
                (id for id, known in self._counts.items() if known.total and not known.active), None
            )
            if oldest is None or oldest == count.id:
                return
            del self._counts[oldest]
            for thread in [thread for thread, batch in self._open.items() if batch == oldest]:
                del self._open[thread]

    def heard(self, change: Change, committed: Committed) -> None:
        task = change.task
        count = self._counts.get(task.batch)
        if count is None:
            return
        if change.replaces == 0:
            count = replace(count, total=count.total + 1)
            self._open[task.thread] = task.batch
        elif change.ends:
            failed = task.status is not Status.COMPLETED
            count = replace(count, ended=count.ended + 1, failed=count.failed + failed)
        elif change.archives is not None:  # resumed: it counts as running again
            failed = change.archives.status is not Status.COMPLETED
            count = replace(count, ended=count.ended - 1, failed=count.failed - failed)
        else:
            return
        self._counts[task.batch] = count

    async def count(self, batch: str) -> BatchCount | None:
        known = self._counts.get(batch)
        return known if known is not None and known.total else await self._record.store.batch(batch)

    async def label(self, notices: Sequence[Notice]) -> list[Notice]:
        """Notices told together count up to where their batch stands: 3 of 5, then 4 of 5."""
        labelled: list[Notice] = []
        counts: dict[str, BatchCount | None] = {}
        for notice in reversed(notices):
            batch = notice.task.batch
            if batch not in counts:
                counts[batch] = await self.count(batch)
            count = counts[batch]
            labelled.append(replace(notice, batch=count))
            if count is not None:
                counts[batch] = replace(count, ended=max(1, count.ended - 1))
        labelled.reverse()
        return labelled
