"""tally: everything in a few numbers, counted along in memory, so that a look costs no history."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Sequence

from meantime.kernel.change import Change
from meantime.kernel.lifecycle import ENDED, Status
from meantime.kernel.minute_buckets import FAILURES, MinuteBuckets, of_journal
from meantime.kernel.model import Task
from meantime.kernel.overview import COUNTED, MOST_BATCHES, MOST_THREADS, Overview, ThreadStanding
from meantime.ports.store import Committed, Query

from .admit import Admission
from .batches import Batches
from .record import Record
from .wake import Waking

KEPT_THREADS = 1_000  # whose last event is remembered
REPLAYED = 5_000  # events of the journal that a new owner reads for the last hour
RECENT = 200  # tasks whose threads a new owner remembers
COUNTED_TASKS = 10_000  # of one thread and one status
LATE = 60.0  # seconds after its ending, when a notice that is not told is late
_AT_WORK = frozenset({Status.RUNNING, Status.WAITING, Status.CANCELLING})


class Tally:
    """Begins with the first look, from the newest part of the journal: until then a start and an ending cost
    nothing here."""

    def __init__(self, record: Record, admission: Admission, batches: Batches, waking: Waking) -> None:
        self._record = record
        self._admission = admission
        self._batches = batches
        self._waking = waking
        self._statuses: dict[str, Status] = {}  # of what is active
        self._counts: Counter[Status] = Counter()  # of what is active
        self._waiting: Counter[str] = Counter()  # of those, by thread: for an answer
        self._minutes = MinuteBuckets()
        self._threads: OrderedDict[str, float] = OrderedDict()  # the newest event of each, newest last
        self._counts_along = False

    async def _begin(self) -> None:
        store = self._record.store
        last = await store.last_event()
        events = await store.events(max(0, last - REPLAYED), REPLAYED)
        recent = await store.list(Query(limit=RECENT, hidden=True))
        if self._counts_along:
            return  # somebody else looked meanwhile
        self._counts_along = True
        self._record.listeners.append(self._on_commit)
        active = self._record.live.values()
        for task in active:
            self._move(task)
        self._minutes = of_journal(events, self._at_work())
        for task in sorted((*reversed(recent), *active), key=lambda task: task.updated_at):
            self._touch(task)

    def _on_commit(self, change: Change, committed: Committed) -> None:
        task = change.task
        self._touch(task)
        if self._statuses.get(task.id) is task.status:
            return
        if not change.ends and task.status in ENDED:
            return  # an ended task was cleared or read: it is not counted here
        self._move(task)
        self._minutes.ran(self._at_work(), task.updated_at)
        if change.ends:
            failed = task.status in FAILURES
            self._minutes.ended(task.updated_at, failed=failed, seconds=task.run.duration)

    def _touch(self, task: Task) -> None:
        self._threads[task.thread] = task.updated_at
        self._threads.move_to_end(task.thread)
        if len(self._threads) > KEPT_THREADS:
            self._threads.popitem(last=False)

    def _move(self, task: Task) -> None:
        status = task.status
        before = self._statuses.pop(task.id, None)
        if before is not None:
            self._counts[before] -= 1
        if status not in ENDED:
            self._statuses[task.id] = status
            self._counts[status] += 1
        if before is Status.WAITING:
            self._waiting[task.thread] -= 1
            if not self._waiting[task.thread]:
                del self._waiting[task.thread]
        if status is Status.WAITING:
            self._waiting[task.thread] += 1

    def _at_work(self) -> int:
        return sum(self._counts[status] for status in _AT_WORK)

    async def overview(self, thread: str | None) -> Overview:
        if not self._counts_along:
            await self._begin()
        return await (self._of_all() if thread is None else self._of_thread(thread))

    async def _of_all(self) -> Overview:
        store, slots, now = self._record.store, self._admission.slots, self._record.clock.now()
        late, untold, told = await store.late(now - LATE, COUNTED)
        known = await store.ended_counts()
        failed, ended = self._minutes.endings(now)
        p50, p95 = self._minutes.percentiles(now, 0.5, 0.95)
        names = list(reversed(self._threads))[:MOST_THREADS]
        return Overview(
            counts={status: known.get(status, self._counts[status]) for status in Status},
            running=tuple(self._minutes.peaks(now)),
            p50=p50,
            p95=p95,
            failed=failed,
            ended=ended,
            late=late,
            notices=told + untold,
            slots_used=slots.running,
            slots_total=slots.limits.total,
            queued=slots.waiting,
            threads=await self._standings(names),
            batches=tuple(self._batches.newest(MOST_BATCHES, None)),
        )

    async def _of_thread(self, thread: str) -> Overview:
        """For whoever may see no other: the numbers of the machine are not theirs."""
        active = Counter(task.status for task in self._record.of_thread.get(thread, {}).values())
        counts = {
            status: await self._record.store.count(Query(thread, frozenset({status})), COUNTED_TASKS)
            for status in ENDED
        }
        return Overview(
            counts={status: counts.get(status, active[status]) for status in Status},
            queued=active[Status.QUEUED],
            threads=await self._standings([thread]),
            batches=tuple(self._batches.newest(MOST_BATCHES, thread)),
        )

    async def _standings(self, names: Sequence[str]) -> tuple[ThreadStanding, ...]:
        held = await self._record.store.held_of(names, COUNTED)
        return tuple(
            ThreadStanding(
                name,
                len(self._record.of_thread.get(name, ())),
                self._waiting[name],
                min(self._waking.unread(name), COUNTED),
                *held.get(name, (0, 0)),
                self._threads.get(name),
            )
            for name in names
        )
