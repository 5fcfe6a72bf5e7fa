"""The Store that forgets."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from meantime.kernel.change import Change, purged
from meantime.kernel.inbox_page import FAILURES, UNCLAIMED, InboxEntry, inbox_entry
from meantime.kernel.lifecycle import ENDED
from meantime.kernel.limits import Retention
from meantime.kernel.model import BatchCount, Event, Task
from meantime.kernel.notice_sources import Draft, notice_id
from meantime.kernel.notices import Notice, NoticeState
from meantime.kernel.row_facts import EndingDelivery
from meantime.kernel.stats import Statistics
from meantime.ports.store import CommitResult, Committed, Entry, Owed, Query, Settled

from .inboxes import Inboxes
from .records import NoticeRecord, TaskRecord
from .schedule_index import MemorySchedules
from .spills import Spills
from .task_index import TaskIndex, statistics


class MemoryStore(MemorySchedules):
    """Nothing in it waits, but for files; so every method is atomic by itself."""

    is_copy = False

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._tasks = TaskIndex()
        self._inbox = Inboxes()
        self._reset_schedules()
        self._transcripts: defaultdict[str, TranscriptLines] = defaultdict(TranscriptLines)
        self._journal = Journal()
        self._spills = Spills()

    async def open(self) -> None:
        """There is nothing to open."""

    async def own(self) -> None:
        """It was nobody else's."""

    async def close(self) -> None:
        spills = self._spills
        self._reset()
        await spills.close()

    # -- writing tasks
    def commit(self, change: Change) -> asyncio.Future[Committed]:
        """Done before it returns: there is nothing left that a cancel could take back."""
        done: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        done.set_result(self._commit(change))
        return done

    def _commit(self, change: Change) -> Committed:
        if not change.writes:
            return Committed(CommitResult.DONE)
        creates = change.replaces == 0
        refusal = self._refuse_new(change.task) if creates else self._refuse(change)
        if refusal is not None:
            return refusal
        record = self._tasks.create(change.task) if creates else self._tasks.replace(change.task)
        counts = creates or change.ends or change.archives is not None
        batch = self._tasks.batch(change.task.batch, change.task.thread) if counts else None
        if change.archives is not None:
            record.runs.append(change.archives)
        number = 0
        for draft in change.notices:
            number = self._tell(record, draft)
        if change.ends:
            self._tasks.end(record)
            ending = record.notices[-1]
            ending.batch, ending.running = batch, self._tasks.active_of[change.task.thread]
        return Committed(CommitResult.DONE, self._journal.write(change.event), number, batch=batch)

    def _refuse_new(self, task: Task) -> Committed | None:
        if task.id in self._tasks.records:
            return Committed(CommitResult.SAME_ID, existing=task.id)
        existing = self._tasks.called(task.thread, task.tool_call_id)
        return None if existing is None else Committed(CommitResult.SAME_CALL, existing=existing)

    def _refuse(self, change: Change) -> Committed | None:
        task = change.task
        record = self._tasks.records.get(task.id)
        stale = record is None or record.task.version != change.replaces
        # A run ends once, whatever version the change was decided on.
        again = change.ends and notice_id(task.id, task.run.number) in self._inbox.all
        if stale or again:
            return Committed(CommitResult.CONFLICT)
        joins = [draft.body for draft in change.notices if draft.joins and draft.body is not None]
        leased = any(self._inbox.joinable(body) is None for body in joins)
        return Committed(CommitResult.LEASED) if leased else None

    def _tell(self, record: TaskRecord, draft: Draft) -> int:
        joined = self._inbox.joinable(draft.body) if draft.joins and draft.body is not None else None
        if joined is None:
            return self._inbox.add(record, draft).number
        joined.body, joined.at = draft.body, draft.at
        return joined.number

    # -- reading tasks
    async def load(self, id: str) -> Task | None:
        record = self._tasks.records.get(id)
        return record.task if record else None

    async def find(self, prefix: str, thread: str | None, limit: int) -> Sequence[Task]:
        return self._tasks.find(prefix, thread, limit)

    async def called(self, thread: str, tool_call: str) -> str | None:
        return self._tasks.called(thread, tool_call)

    async def list(self, query: Query) -> Sequence[Task]:
        return self._tasks.page(query)

    async def place(self, id: str) -> int | None:
        record = self._tasks.records.get(id)
        return record.born if record else None

    async def count(self, query: Query, most: int | None = None) -> int:
        return self._tasks.count(query, most)

    async def statistics(self, thread: str | None) -> Statistics:
        return statistics(self._tasks.every(thread))

    async def hot(self, thread: str, keep: int) -> Sequence[Task]:
        return self._tasks.hot(
            thread, keep, (one.of for one in self._inbox.untold(thread) if one.body is None and one.of)
        )

    async def runs(self, task_id: str) -> Sequence[Task]:
        record = self._tasks.records.get(task_id)
        return tuple(record.runs) if record else ()

    async def children(self, parent: str, limit: int) -> Sequence[Task]:
        every = reversed(self._tasks.records.values())
        found = (record.task for record in every if record.task.parent == parent)
        return list(islice(found, limit))

    async def active(self) -> Sequence[Task]:
        return self._tasks.active()

    async def following(self) -> Sequence[Task]:
        return self._tasks.following()

    async def batch(self, id: str, thread: str | None = None) -> BatchCount | None:
        return self._tasks.batch(id, thread)

    async def counts(self) -> Mapping[str, int]:
        tasks = {str(status): count for status, count in self._tasks.statuses.items() if count}
        return tasks | {f"notices.{state}": count for state, count in self._inbox.states.items() if count}

    # -- rows and numbers for people
    async def ended_counts(self) -> Mapping[str, int]:
        return {status: self._tasks.shown[status] for status in ENDED if self._tasks.shown[status]}

    async def deliveries_of(self, ids: Sequence[str]) -> Mapping[str, EndingDelivery]:
        records = ((id, self._tasks.records.get(id)) for id in ids)
        newest = [
            (id, record.notices[-1], record.task) for id, record in records if record and record.notices
        ]
        return {id: notice.delivery for id, notice, task in newest if notice.run == task.run.number}

    async def children_of(self, ids: Sequence[str], most: int) -> Mapping[str, int]:
        found = ((id, self._tasks.children(id)) for id in ids)
        return {id: min(count, most) for id, count in found if count}

    async def held_of(self, threads: Sequence[str], most: int) -> Mapping[str, tuple[int, int]]:
        return {thread: self._inbox.held(thread, most) for thread in threads}

    async def late(self, before: float, most: int) -> tuple[int, int, int]:
        return self._inbox.late(before, most)

    # -- telling
    async def lease(self, thread: str, turn: str, limit: int, now: float) -> Sequence[Notice]:
        return [_notice(kept) for kept in self._inbox.lease(thread, turn, limit, now)]

    async def read(self, turn: str, task_id: str, run: int, now: float) -> bool:
        return self._inbox.read(turn, notice_id(task_id, run))

    async def settle(
        self, thread: str, turn: str, notices: Sequence[str], entries: Sequence[Entry], now: float
    ) -> Settled:
        settled = self._inbox.settle(thread, turn, notices, now)
        self._transcripts[thread].append(entries)
        return settled

    async def told_by(self, turn: str, notices: Sequence[str], thread: str | None) -> Sequence[str]:
        return self._inbox.told_by(turn, notices, thread)

    async def release(self, thread: str, turn: str, *, failed: bool, parks_after: int) -> Sequence[str]:
        return self._inbox.release(thread, turn, failed=failed, parks_after=parks_after)

    async def notices(
        self, thread: str | None, states: Iterable[NoticeState], limit: int, offset: int = 0
    ) -> Sequence[Notice]:
        selected = self._inbox.select(thread, frozenset(states))
        return [_notice(kept) for kept in islice(selected, offset, offset + limit)]

    async def count_notices(self, thread: str | None, states: Iterable[NoticeState]) -> int:
        return sum(1 for _ in self._inbox.select(thread, frozenset(states)))

    async def inbox(self, thread: str, before: int, limit: int) -> Sequence[InboxEntry]:
        return [_entry(kept) for kept in self._inbox.page(thread, before, limit)]

    async def deliveries(self, task_id: str, limit: int) -> Sequence[InboxEntry]:
        record = self._tasks.records.get(task_id)
        return [_entry(kept) for kept in record.notices[-limit:]] if record else []

    async def count_inbox(self, thread: str, most: int) -> Mapping[str, int]:
        return self._inbox.count(thread, most)

    async def unread(self) -> Mapping[str, int]:
        return dict(self._inbox.unread)

    async def owed(self, thread: str | None, limit: int) -> Sequence[Owed]:
        known = {*self._tasks.threads(), *self._inbox.threads(), *self._pending_by_thread}
        names = [name for name in sorted(known) if thread in (None, name)]
        return [self._inbox.owed(name) for name in names[:limit]]

    async def unpark(self, thread: str, notices: Sequence[str] | None = None) -> int:
        return self._inbox.unpark(thread, notices)

    async def park_unclaimed(self, before: float, spare: Sequence[str]) -> int:
        return self._inbox.park_unclaimed(before, frozenset(spare))

    async def recover(self, parks_after: int) -> int:
        return self._inbox.recover(parks_after)

    # -- a transcript of our own
    async def append(self, thread: str, entries: Sequence[Entry]) -> None:
        self._transcripts[thread].append(entries)

    async def transcript(self, thread: str) -> Sequence[Entry]:
        kept = self._transcripts.get(thread)
        return tuple(kept.entries) if kept else ()

    async def has_entry(self, thread: str, notice: str) -> bool:
        kept = self._transcripts.get(thread)
        return kept is not None and notice in kept.notices

    # -- observing, upkeep, files
    async def events(self, after: int, limit: int) -> Sequence[Event]:
        return self._journal.after(after, limit)

    async def last_event(self) -> int:
        return self._journal.seq

    async def forget(self, retention: Retention, now: float) -> int:
        untold = {notice.of.task.id for notice in self._inbox.open.values() if notice.of is not None}
        self._forget_schedules(retention, now)
        self._journal.trim(max(1, retention.journal_events))
        for record in self._tasks.records.values():
            if len(record.events) > retention.told_events:
                self._inbox.prune(record, retention.told_events)
        return await self._delete(self._tasks.forgettable(retention, now, untold))

    async def purge(self, ids: Sequence[str], now: float | None = None) -> int:
        ended = self._tasks.ended
        records = [ended[id] for id in dict.fromkeys(ids) if id in ended]
        for record in records if now is not None else ():
            self._journal.write(purged(record.task, now or 0.0))
        return await self._delete(records)

    async def _delete(self, records: Sequence[TaskRecord]) -> int:
        for record in records:
            self._inbox.drop(record)
        self._tasks.drop(records)
        outcomes = (task.outcome for record in records for task in (record.task, *record.runs))
        await self._spills.delete(end.spill.path for end in outcomes if end and end.spill)
        return len(records)

    async def spill(self, payload: bytes) -> str:
        return await self._spills.write(payload)

    async def unspill(self, path: str) -> bytes:
        return await self._spills.read(path)


def _notice(kept: NoticeRecord) -> Notice:
    told = (kept.number, kept.nonce, kept.deliveries, kept.state, kept.batch)
    return Notice(kept.task, *told, body=kept.body, running=kept.running)


def _entry(kept: NoticeRecord) -> InboxEntry:
    parked = kept.state is NoticeState.PARKED
    return inbox_entry(
        _notice(kept),
        turn=kept.turn or None,
        turn_number=kept.turn_number if kept.turn else None,
        told_at=kept.told_at,
        failures=kept.failures,
        parked_for=(UNCLAIMED if kept.waits else FAILURES) if parked else "",
    )


class Journal:
    """The events, in commit order."""

    def __init__(self) -> None:
        self.seq = 0
        self._events: list[Event] = []

    def write(self, event: Event | None) -> int:
        """Returns its sequence number; 0 stands for none."""
        if event is None:
            return 0
        self.seq += 1
        self._events.append(replace(event, seq=self.seq))
        return self.seq

    def after(self, seq: int, limit: int) -> Sequence[Event]:
        trimmed = self.seq - len(self._events)  # sequence numbers have no gaps: the place is arithmetic
        start = max(0, seq - trimmed)
        return self._events[start : start + limit]

    def trim(self, keep: int) -> None:
        del self._events[: max(0, len(self._events) - keep)]


class TranscriptLines:
    """The transcript of a thread: at most one entry a notice."""

    __slots__ = ("entries", "notices")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.notices: set[str] = set()

    def append(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry.notice is not None:
                if entry.notice in self.notices:
                    continue
                self.notices.add(entry.notice)
            self.entries.append(replace(entry, position=len(self.entries) + 1))
