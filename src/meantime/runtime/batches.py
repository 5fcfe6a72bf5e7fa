"""batches: which of them work joins; and how the newest stand, in memory, so that a look costs no history."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TypeAlias

from meantime.kernel.change import Change
from meantime.kernel.ids import ENTROPY, batch_id, check_id, is_unnamed
from meantime.kernel.limits import WATCH
from meantime.kernel.model import BatchCount, Task
from meantime.kernel.overview import BatchStanding
from meantime.ports.store import Committed

from .entropy import entropy
from .record import Record

KEPT = 1_000  # batches remembered; an older one is counted in the store when somebody asks


Key: TypeAlias = tuple[str, str]  # thread and batch: what has the same id in another thread is another batch


class Batches:
    def __init__(self, record: Record) -> None:
        self._record = record
        self._counts: dict[Key, BatchCount] = {}  # as their last commits left them
        self._over: OrderedDict[Key, None] = OrderedDict()  # of those, what may be forgotten; oldest first
        # By thread: batches without a name in which something is active. Work without a batch joins the last.
        self._open: dict[str, dict[str, None]] = {}

    async def recover(self, active: Iterable[Task]) -> None:
        for task in active:
            known = self._counts.get((task.thread, task.batch))
            self._update(task, known or await self._record.store.batch(task.batch, task.thread))

    def choose(self, thread: str, asked: str | None) -> str:
        """The requested batch; or the thread's open one, where something is active; or a new one."""
        if asked is not None:
            return check_id(asked, "batch")
        if open := self._open.get(thread):
            return next(reversed(open))
        batch = batch_id(entropy(ENTROPY))
        self._remember((thread, batch), BatchCount(batch, 0, 0), is_over=True)
        self._open[thread] = {batch: None}
        return batch

    def of_resumed(self, task: Task) -> str:
        """A task joins the open batch, unless it was put into one that has a name."""
        open = self._open.get(task.thread, {})
        if task.batch in open or not is_unnamed(task.batch):
            return task.batch
        active = (batch for batch in reversed(open) if self._counts[task.thread, batch].active)
        return next(active, task.batch)

    def on_commit(self, change: Change, committed: Committed) -> None:
        left = change.archives
        if left is not None and left.batch != change.task.batch:
            self._forget((left.thread, left.batch))
        self._update(change.task, committed.batch)

    def _update(self, task: Task, count: BatchCount | None) -> None:
        """Nothing joins the batch of a watch, which may never end."""
        if count is None:
            return
        is_over = not count.active
        if is_over:
            self._leave(task.thread, count.id)
        elif task.work.kind != WATCH and is_unnamed(count.id):
            self._open.setdefault(task.thread, {})[count.id] = None
        self._remember((task.thread, count.id), count, is_over=is_over)

    def _remember(self, key: Key, count: BatchCount, *, is_over: bool) -> None:
        """In constant time: every start may bring a new batch, and many batches may be active."""
        self._counts[key] = count
        self._over.pop(key, None)
        if not is_over:
            return
        self._over[key] = None
        while len(self._counts) > KEPT and len(self._over) > 1:
            self._forget(next(iter(self._over)))

    def _forget(self, key: Key) -> None:
        """A batch that is over; or one that never had a task, and is still open."""
        self._counts.pop(key, None)
        self._over.pop(key, None)
        self._leave(*key)

    def _leave(self, thread: str, batch: str) -> None:
        open = self._open.get(thread, {})
        open.pop(batch, None)
        if not open:
            self._open.pop(thread, None)

    async def count(self, batch: str, thread: str | None) -> BatchCount | None:
        """The count for one thread: it counts the tasks that it may cancel. People count the tasks of all
        threads.
        """
        known = None if thread is None else self._counts.get((thread, batch))
        return known if known and known.total else await self._record.store.batch(batch, thread)

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
