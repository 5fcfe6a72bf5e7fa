"""The tasks, and the indexes that find them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain, count, islice
from typing import assert_never

from meantime.kernel.lifecycle import ACTIVE, ENDED, Status
from meantime.kernel.limits import WATCH, Retention
from meantime.kernel.model import BatchCount, Task
from meantime.kernel.stats import Heap, Statistics
from meantime.ports.search_filter import fits
from meantime.ports.store import Query, Sort

from .records import TaskRecord, by_birth, by_number


class BatchCounters:
    __slots__ = ("records", "statuses")

    def __init__(self) -> None:
        self.records: dict[str, TaskRecord] = {}
        self.statuses: Counter[tuple[str, Status]] = Counter()  # by thread


class TaskIndex:
    """Every dict of records has them by task id."""

    def __init__(self) -> None:
        self.records: dict[str, TaskRecord] = {}  # by birth
        self.ended: OrderedDict[str, TaskRecord] = OrderedDict()  # by the commit of the last ending
        self.statuses: Counter[Status] = Counter()
        self.shown: Counter[Status] = Counter()  # of those, what is not cleared
        self._children: defaultdict[str, set[str]] = defaultdict(set)  # by parent
        self._births = count(1)
        self._ids: list[str] = []  # sorted, for prefixes
        self._calls: dict[tuple[str, str], str] = {}
        self._active: dict[str, TaskRecord] = {}
        self._threads: defaultdict[str, dict[str, TaskRecord]] = defaultdict(dict)  # by birth
        # Ended and not cleared, by completion number.
        self._endings: defaultdict[str, dict[str, TaskRecord]] = defaultdict(dict)
        self._batches: dict[str, BatchCounters] = {}
        self.active_of: Counter[str] = Counter()  # by thread, without watches

    # -- writing
    def create(self, task: Task) -> TaskRecord:
        record = TaskRecord(task, next(self._births))
        self.records[task.id] = self._threads[task.thread][task.id] = record
        insort(self._ids, task.id)
        if task.tool_call_id is not None:
            self._calls[task.thread, task.tool_call_id] = task.id
        if task.parent is not None:
            self._children[task.parent].add(task.id)
        if task.batch:
            self._batches.setdefault(task.batch, BatchCounters()).records[task.id] = record
        self._count(task, 1)
        if not task.ended:
            self._active[task.id] = record
        return record

    def replace(self, task: Task) -> TaskRecord:
        record = self.records[task.id]
        before, record.task = record.task, task
        self._count(before, -1)
        if before.batch != task.batch:
            self._leave_batch(before)
            batch = self._batches.setdefault(task.batch, BatchCounters())
            records = sorted((*batch.records.values(), record), key=by_birth)
            batch.records = {one.task.id: one for one in records}
        self._count(task, 1)
        if not task.ended:
            self._active[task.id] = record
            self.ended.pop(task.id, None)
        if not task.ended:
            self._endings[task.thread].pop(task.id, None)
        return record

    def end(self, record: TaskRecord) -> None:
        """Its last ending is the newest now."""
        task = record.task
        self._active.pop(task.id, None)
        self.ended.pop(task.id, None)
        self.ended[task.id] = record
        endings = self._endings[task.thread]
        endings.pop(task.id, None)
        endings[task.id] = record

    def drop(self, records: Sequence[TaskRecord]) -> None:
        for record in records:
            self._drop(record.task)
        if records:  # once for all: taking them out one by one moves the rest every time
            self._ids = [id for id in self._ids if id in self.records]

    def _drop(self, task: Task) -> None:
        self._count(task, -1)
        if task.tool_call_id is not None:
            del self._calls[task.thread, task.tool_call_id]
        if task.parent is not None:
            self._children[task.parent].discard(task.id)
            if not self._children[task.parent]:
                del self._children[task.parent]
        if task.batch:
            self._leave_batch(task)
        self._endings[task.thread].pop(task.id, None)
        del self._threads[task.thread][task.id], self.ended[task.id], self.records[task.id]

    def _leave_batch(self, task: Task) -> None:
        del self._batches[task.batch].records[task.id]
        if not self._batches[task.batch].records:
            del self._batches[task.batch]

    def _count(self, task: Task, by: int) -> None:
        self.statuses[task.status] += by
        self.shown[task.status] += 0 if task.hidden else by
        if task.batch:
            self._batches[task.batch].statuses[task.thread, task.status] += by
        if not task.ended and task.work.kind != WATCH:
            self.active_of[task.thread] += by

    # -- reading
    def following(self) -> Sequence[Task]:
        """A memory that forgets is asked for these only when it is empty."""
        return [record.task for record in self.ended.values() if record.task.follow_up]

    def called(self, thread: str, tool_call: str | None) -> str | None:
        """The id of the task that this tool call made."""
        return None if tool_call is None else self._calls.get((thread, tool_call))

    def find(self, prefix: str, thread: str | None, limit: int) -> Sequence[Task]:
        """By id, so that an exact one comes first."""
        ours = "t_".startswith(prefix) or prefix.startswith("t_")
        ids = self._starting(prefix) if ours else chain(self._starting(prefix), self._starting("t_" + prefix))
        tasks = (self.records[id].task for id in ids)
        return list(islice((task for task in tasks if thread is None or task.thread == thread), limit))

    def _starting(self, prefix: str) -> Iterator[str]:
        for place in range(bisect_left(self._ids, prefix), len(self._ids)):
            if not self._ids[place].startswith(prefix):
                return
            yield self._ids[place]

    def page(self, query: Query) -> Sequence[Task]:
        found = self._sorted(query)
        if query.before is not None:
            found = (task for task in found if self.records[task.id].born < query.before)
        return list(islice(found, query.offset, query.offset + query.limit))

    def every(self, thread: str | None) -> Iterator[Task]:
        """Everything that is not cleared, of one thread or of all."""
        return self._fitting(Query(thread))

    def threads(self) -> list[str]:
        return sorted(name for name, kept in self._threads.items() if kept)

    def count(self, query: Query, most: int | None = None) -> int:
        return sum(1 for _ in islice(self._fitting(query), most))

    def children(self, parent: str) -> int:
        return len(self._children.get(parent, ()))

    def _fitting(self, query: Query) -> Iterator[Task]:
        return (record.task for record in self._newest_first(query) if fits(query, record.task))

    def _sorted(self, query: Query) -> Iterable[Task]:
        match query.sort:
            case Sort.NEWEST:
                return self._fitting(query)
            case Sort.OLDEST:
                return reversed(list(self._fitting(query)))
            case Sort.UPDATED:
                return sorted(self._fitting(query), key=lambda task: -task.updated_at)
            case Sort.LONGEST:
                return sorted(self._fitting(query), key=_longest_first)
            case _:
                assert_never(query.sort)

    def _newest_first(self, query: Query) -> Iterable[TaskRecord]:
        """From the smallest index that holds everything the query may want."""
        if query.statuses is not None and query.statuses <= ACTIVE:
            return sorted(self._active.values(), key=by_birth, reverse=True)
        if query.batch is not None:
            batch = self._batches.get(query.batch)
            return reversed(batch.records.values()) if batch else ()
        if query.thread is not None:
            return reversed(self._threads.get(query.thread, {}).values())
        return reversed(self.records.values())

    def hot(self, thread: str, keep: int, untold: Iterable[TaskRecord]) -> Sequence[Task]:
        """A task that runs again is active, not an ending: it is left to whoever lists those."""
        endings = self._endings.get(thread, {})
        kept = dict(islice(reversed(endings.items()), keep))
        kept.update((record.task.id, record) for record in untold if record.task.id in endings)
        newest_first = sorted(kept.values(), key=by_number, reverse=True)
        return [record.task for record in newest_first if not record.task.hidden]

    def active(self) -> Sequence[Task]:
        return [record.task for record in sorted(self._active.values(), key=by_birth)]

    def forgettable(self, retention: Retention, now: float, untold: Set[str]) -> Sequence[TaskRecord]:
        """Oldest endings first; it stops at the first that may stay, so its cost is what it finds."""
        excess = len(self.ended) - len(untold & self.ended.keys()) - retention.history_tasks
        oldest = now - retention.history_seconds
        found: list[TaskRecord] = []
        for id, record in self.ended.items():
            if id in untold:
                continue
            if len(found) >= excess and (record.task.run.ended_at or 0.0) >= oldest:
                break
            found.append(record)
        return found

    def batch(self, id: str, thread: str | None = None) -> BatchCount | None:
        batch = self._batches.get(id)
        if batch is None:
            return None
        if thread is not None:
            statuses = {status: batch.statuses[thread, status] for status in Status}
        else:
            statuses = Counter[Status]()
            for (_, status), tasks in batch.statuses.items():
                statuses[status] += tasks
        ended = sum(statuses[status] for status in ENDED)
        total = sum(statuses.values())
        return BatchCount(id, ended, total, ended - statuses[Status.COMPLETED]) if total else None


def _longest_first(task: Task) -> float:
    return 1.0 if task.run.duration is None else -task.run.duration


def statistics(tasks: Iterable[Task]) -> Statistics:
    heaps: dict[tuple[Status, bool, str], list[Task]] = {}
    for task in tasks:
        heaps.setdefault((task.status, task.resumed, task.agent_or_kind), []).append(task)
    return Statistics(tuple(_heap(*alike, found) for alike, found in heaps.items()))


def _heap(status: Status, resumed: bool, agent: str, found: list[Task]) -> Heap:
    took = [task.run.duration for task in found if task.run.duration is not None]
    longest, shortest = max(took, default=None), min(took, default=None)
    return Heap(status, resumed, agent, len(found), len(took), sum(took), longest, shortest)
