"""batches: n of m, kept in memory for whatever is open, so that telling never counts history."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias

from msgspec.structs import replace

from meantime.kernel.change import Change
from meantime.kernel.ids import ENTROPY, batch_id, check_id, is_unnamed
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import WATCH
from meantime.kernel.model import BatchCount, Task
from meantime.kernel.notices import Notice
from meantime.kernel.overview import BatchStanding
from meantime.ports.store import Committed

from .entropy import entropy
from .record import Record

KEPT = 1_000  # batches remembered; an older one is counted in the store when somebody asks


Key: TypeAlias = tuple[str, str]  # thread and batch: what has the same id in another thread is another batch


class Batches:
    def __init__(self, record: Record) -> None:
        self._record = record
        self._counts: dict[Key, BatchCount] = {}
        self._over: OrderedDict[Key, None] = OrderedDict()  # of those, what may be forgotten; oldest first
        self._open: dict[str, str] = {}  # by thread: the batch that work without one joins

    async def recover(self, active: Iterable[Task]) -> None:
        for task in active:
            await self._know((task.thread, task.batch))
            self._join(task)

    async def choose(self, thread: str, asked: str | None) -> str:
        """The requested batch; or the thread's open one, where something is active; or a new one."""
        if asked is not None:
            await self._know((thread, check_id(asked, "batch")))
            return asked
        batch = self._open.get(thread)
        if batch is None:
            batch = batch_id(entropy(ENTROPY))
            self._remember((thread, batch), BatchCount(batch, 0, 0))
            self._open[thread] = batch
        return batch

    async def _know(self, key: Key) -> None:
        """Before anything of ours is on its way to it: afterwards we count along."""
        if key not in self._counts:
            self._remember(key, await self._stored(key) or BatchCount(key[1], 0, 0))

    async def _stored(self, key: Key) -> BatchCount | None:
        thread, batch = key
        return await self._record.store.batch(batch, thread)

    def _remember(self, key: Key, count: BatchCount) -> None:
        """In constant time: every start may bring a new batch, and many batches may be active."""
        self._counts[key] = count
        if count.active:
            self._over.pop(key, None)
            return
        self._over[key] = None
        if count.total:  # without any task yet it is open: its first one is on its way
            self._leave(key)
        while len(self._counts) > KEPT and len(self._over) > 1:
            oldest, _ = self._over.popitem(last=False)
            del self._counts[oldest]
            self._leave(oldest)

    def _join(self, task: Task) -> None:
        """Work that is started next without a batch joins it. Nothing joins a watch, which may never end."""
        if task.work.kind != WATCH:
            self._open[task.thread] = task.batch

    def _leave(self, key: Key) -> None:
        thread, batch = key
        if self._open.get(thread) == batch:
            del self._open[thread]

    def on_commit(self, change: Change, committed: Committed) -> None:
        task = change.task
        key = (task.thread, task.batch)
        count = self._counts.get(key)
        if count is None:
            return
        if change.replaces == 0:
            count = replace(count, total=count.total + 1)
            self._join(task)
        elif change.ends:
            failed = task.status is not Status.COMPLETED
            count = replace(count, ended=count.ended + 1, failed=count.failed + failed)
        elif change.archives is not None:  # resumed: it counts as running again
            failed = change.archives.status is not Status.COMPLETED
            count = replace(count, ended=count.ended - 1, failed=count.failed - failed)
            self._open.setdefault(task.thread, task.batch)
        else:
            return
        self._remember(key, count)

    async def count(self, batch: str, thread: str | None) -> BatchCount | None:
        """The count for one thread: it counts the tasks that it may cancel. People count the tasks of all
        threads.
        """
        if thread is None:
            return await self._record.store.batch(batch, None)
        known = self._counts.get((thread, batch))
        return known if known is not None and known.total else await self._stored((thread, batch))

    def newest(self, most: int, thread: str | None) -> Iterator[BatchStanding]:
        """Batches that people named, or that hold several tasks: first those where something is active, then
        those that ended last."""
        active = (key for key in reversed(self._counts) if key not in self._over)
        looked_at = islice(chain(active, reversed(self._over)), 2 * KEPT)
        found = (key for key in looked_at if thread in (None, key[0]))
        counts = ((key, self._counts[key]) for key in found)
        named = ((key, one) for key, one in counts if one.total > 1 or (one.total and not is_unnamed(one.id)))
        for (owner, id), count in islice(named, most):
            yield BatchStanding(id, owner, count.ended, count.failed, count.total)

    async def label(self, notices: Sequence[Notice]) -> list[Notice]:
        """Notices told together count up to where their batch stands: 3 of 5, then 4 of 5."""
        labelled: list[Notice] = []
        counts: dict[Key, BatchCount | None] = {}
        for notice in reversed(notices):
            if notice.body is not None:  # only an ending counts
                labelled.append(notice)
                continue
            thread, batch = key = (notice.task.thread, notice.task.batch)
            if key not in counts:
                counts[key] = await self.count(batch, thread)
            count = counts[key]
            labelled.append(replace(notice, batch=count))
            if count is not None:
                counts[key] = replace(count, ended=max(1, count.ended - 1))
        labelled.reverse()
        return labelled
