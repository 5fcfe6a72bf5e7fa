"""A store that forgets at close: dicts that keep their order, and one owner on one loop.

It holds the values themselves, not copies, and answers from indexes that follow what is open: a
thread with a long history leases, lists and counts as fast as a new one.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import tempfile
from bisect import bisect_left, insort
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice

from msgspec.structs import replace

from meantime.kernel.change import Change
from meantime.kernel.events import Event
from meantime.kernel.lifecycle import ACTIVE, ENDED, Status
from meantime.kernel.model import BatchCount, Completed, Task
from meantime.kernel.notices import Notice, NoticeState, notice_id
from meantime.kernel.retention import Retention
from meantime.ports.store import CommitResult, Committed, Entry, Query, Settled

ALONE_AFTER = 2  # failed deliveries; then a notice is leased alone
OPEN = frozenset({NoticeState.UNREAD, NoticeState.LEASED, NoticeState.PARKED})


class _Record:
    """A task, what its earlier runs left, and its notices."""

    __slots__ = ("born", "notices", "number", "runs", "task")

    def __init__(self, task: Task, born: int) -> None:
        self.task = task
        self.born = born
        self.number = 0  # the completion number of its last ending
        self.runs: list[Task] = []
        self.notices: list[_Row] = []

    @property
    def untold(self) -> bool:
        return any(row.state in OPEN for row in self.notices)

    def left_by(self, run: int) -> Task:
        return self.task if self.task.run.number == run else next(t for t in self.runs if t.run.number == run)


class _Row:
    """A notice as the store keeps it: what happened to it, beside what it says."""

    __slots__ = ("deliveries", "failures", "id", "nonce", "number", "record", "run", "state", "turn", "waits")

    def __init__(self, record: _Record, number: int) -> None:
        self.record = record
        self.run = record.task.run.number
        self.id = notice_id(record.task.id, self.run)
        self.number = number
        self.nonce = secrets.token_hex(6)
        self.state = NoticeState.UNREAD if record.task.notify else NoticeState.MUTED
        self.turn = ""  # who holds it, or who told it
        self.deliveries = 0
        self.failures = 0
        self.waits = False  # parked because nobody came, not because its delivery failed

    @property
    def task(self) -> Task:
        return self.record.left_by(self.run)


class _Thread:
    """One conversation: its tasks by birth, its endings by number, its inbox and its transcript."""

    __slots__ = (
        "claimed_at", "entries", "entry_notices", "held", "number", "open", "rows", "shown", "tasks", "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        self.tasks: dict[str, _Record] = {}
        self.number = 0
        self.rows: dict[int, _Row] = {}
        # Untold; a told one never comes back, so this stays in order. A plain dict would walk over the
        # holes that a long inbox left at its front.
        self.open: OrderedDict[int, _Row] = OrderedDict()
        self.held: dict[str, dict[int, _Row]] = {}  # by turn
        self.shown: dict[str, _Record] = {}  # ended and not cleared, by completion number
        self.claimed_at = float("-inf")
        self.waits = False  # some of its notices were parked because nobody came
        self.entries: list[Entry] = []
        self.entry_notices: set[str] = set()

    def holds(self, turn: str) -> list[_Row]:
        return sorted(self.held.get(turn, {}).values(), key=_number)

    def next_unread(self, turn: str, limit: int) -> list[_Row]:
        """What the turn may lease now: in order, and one that failed twice by itself."""
        taken: list[_Row] = []
        if any(holder != turn for holder in self.held):
            return taken
        for row in self.open.values():
            if len(taken) >= limit:
                break
            if row.state is not NoticeState.UNREAD:
                continue
            if row.failures >= ALONE_AFTER:
                return taken or [row]
            taken.append(row)
        return taken

    def append(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if entry.notice is not None:
                if entry.notice in self.entry_notices:
                    continue
                self.entry_notices.add(entry.notice)
            self.entries.append(replace(entry, position=len(self.entries) + 1))


class _Batch:
    __slots__ = ("statuses", "tasks")

    def __init__(self) -> None:
        self.tasks: dict[str, _Record] = {}
        self.statuses: Counter[Status] = Counter()

    def count(self, id: str) -> BatchCount:
        ended = sum(self.statuses[status] for status in ENDED)
        return BatchCount(id, ended, len(self.tasks), ended - self.statuses[Status.COMPLETED])


class MemoryStore:
    """The Store that forgets. Nothing in it waits, so every method is atomic by itself."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._born = 0
        self._records: dict[str, _Record] = {}
        self._ids: list[str] = []  # sorted, for prefixes
        self._calls: dict[tuple[str, str], str] = {}
        self._active: dict[str, _Record] = {}
        self._ended: OrderedDict[str, _Record] = OrderedDict()  # by the commit of the last ending
        self._statuses: Counter[Status] = Counter()
        self._threads: defaultdict[str, _Thread] = defaultdict(_Thread)
        self._batches: dict[str, _Batch] = {}
        self._rows: dict[str, _Row] = {}  # every notice, in commit order
        self._open: OrderedDict[str, _Row] = OrderedDict()  # the untold ones, in commit order
        self._states: Counter[NoticeState] = Counter()
        self._unread: Counter[str] = Counter()  # by thread; none is not listed
        self._seq = 0
        self._events: list[Event] = []
        self._folder = ""
        self._spilled: set[str] = set()

    async def open(self) -> None:
        """There is nothing to open."""

    async def close(self) -> None:
        folder = self._folder
        self._reset()
        if folder:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    # -- writing tasks
    def commit(self, change: Change) -> asyncio.Future[Committed]:
        """Done before it returns: there is nothing left that a cancel could take back."""
        done: asyncio.Future[Committed] = asyncio.get_running_loop().create_future()
        done.set_result(self._commit(change))
        return done

    def _commit(self, change: Change) -> Committed:
        if not change.writes:
            return Committed(CommitResult.DONE)
        refusal = self._refuse(change)
        if refusal is not None:
            return refusal
        record = self._create(change.task) if change.replaces == 0 else self._swap(change.task)
        if change.archives is not None:
            record.runs.append(change.archives)
        number = self._end(record) if change.ends else 0
        return Committed(CommitResult.DONE, self._log(change.event), number)

    def _refuse(self, change: Change) -> Committed | None:
        task = change.task
        record = self._records.get(task.id)
        if change.replaces == 0:
            if record is not None:
                return Committed(CommitResult.SAME_ID, existing=task.id)
            call = task.tool_call_id
            existing = self._calls.get((task.thread, call)) if call is not None else None
            return None if existing is None else Committed(CommitResult.SAME_CALL, existing=existing)
        if record is None or record.task.version != change.replaces:
            return Committed(CommitResult.CONFLICT)
        # A run ends once, whatever version the change was decided on.
        if change.ends and notice_id(task.id, task.run.number) in self._rows:
            return Committed(CommitResult.CONFLICT)
        return None

    def _create(self, task: Task) -> _Record:
        self._born += 1
        record = _Record(task, self._born)
        self._records[task.id] = self._threads[task.thread].tasks[task.id] = record
        insort(self._ids, task.id)
        if task.tool_call_id is not None:
            self._calls[task.thread, task.tool_call_id] = task.id
        if task.batch:
            self._batches.setdefault(task.batch, _Batch()).tasks[task.id] = record
        self._count(task, 1)
        if not task.ended:
            self._active[task.id] = record
        return record

    def _swap(self, task: Task) -> _Record:
        record = self._records[task.id]
        self._count(record.task, -1)
        self._count(task, 1)
        record.task = task
        shown = self._threads[task.thread].shown
        if not task.ended:
            self._active[task.id] = record
            self._ended.pop(task.id, None)
        if task.hidden or not task.ended:
            shown.pop(task.id, None)
        elif record.number and task.id not in shown:  # taken back into the listing: into its old place
            shown[task.id] = record
            ordered = sorted(shown.items(), key=lambda item: item[1].number)
            shown.clear()
            shown.update(ordered)
        return record

    def _count(self, task: Task, by: int) -> None:
        self._statuses[task.status] += by
        if task.batch:
            self._batches[task.batch].statuses[task.status] += by

    def _end(self, record: _Record) -> int:
        task, home = record.task, self._threads[record.task.thread]
        home.number += 1
        row = _Row(record, home.number)
        record.number = row.number
        record.notices.append(row)
        home.rows[row.number] = self._rows[row.id] = row
        self._states[row.state] += 1
        if row.state is NoticeState.UNREAD:
            home.open[row.number] = self._open[row.id] = row
            self._unread[task.thread] += 1
        self._active.pop(task.id, None)
        self._ended.pop(task.id, None)
        self._ended[task.id] = record
        home.shown.pop(task.id, None)
        if not task.hidden:
            home.shown[task.id] = record
        return row.number

    def _log(self, event: Event | None) -> int:
        if event is None:
            return 0
        self._seq += 1
        self._events.append(replace(event, seq=self._seq))
        return self._seq

    # -- reading tasks
    async def load(self, id: str) -> Task | None:
        record = self._records.get(id)
        return record.task if record else None

    async def find(self, prefix: str, thread: str | None, limit: int) -> Sequence[Task]:
        """By id, so that an exact one comes first."""
        ours = "t_".startswith(prefix) or prefix.startswith("t_")
        ids = self._starting(prefix) if ours else chain(self._starting(prefix), self._starting("t_" + prefix))
        tasks = (self._records[id].task for id in ids)
        return list(islice((task for task in tasks if thread is None or task.thread == thread), limit))

    def _starting(self, prefix: str) -> Iterator[str]:
        for place in range(bisect_left(self._ids, prefix), len(self._ids)):
            if not self._ids[place].startswith(prefix):
                return
            yield self._ids[place]

    async def list(self, query: Query) -> Sequence[Task]:
        fitting = (record.task for record in self._newest_first(query) if _fits(query, record.task))
        return list(islice(fitting, query.offset, query.offset + query.limit))

    def _newest_first(self, query: Query) -> Iterable[_Record]:
        """From the smallest index that holds everything the query may want."""
        if query.statuses is not None and query.statuses <= ACTIVE:
            return sorted(self._active.values(), key=_birth, reverse=True)
        if query.batch is not None:
            batch = self._batches.get(query.batch)
            return reversed(batch.tasks.values()) if batch else ()
        if query.thread is not None:
            home = self._threads.get(query.thread)
            return reversed(home.tasks.values()) if home else ()
        return reversed(self._records.values())

    async def hot(self, thread: str, keep: int) -> Sequence[Task]:
        """A task that runs again is active, not an ending: it is left to whoever lists those."""
        home = self._threads.get(thread)
        if home is None:
            return ()
        kept = dict(islice(reversed(home.shown.items()), keep))
        untold = (row.record for row in home.open.values())
        kept.update((record.task.id, record) for record in untold if record.task.id in home.shown)
        return [record.task for record in sorted(kept.values(), key=_number, reverse=True)]

    async def runs(self, task_id: str) -> Sequence[Task]:
        record = self._records.get(task_id)
        return tuple(record.runs) if record else ()

    async def active(self) -> Sequence[Task]:
        return [record.task for record in sorted(self._active.values(), key=_birth)]

    async def batch(self, id: str) -> BatchCount | None:
        batch = self._batches.get(id)
        return batch.count(id) if batch else None

    async def counts(self) -> Mapping[str, int]:
        tasks = {str(status): count for status, count in self._statuses.items() if count}
        return tasks | {f"notices.{state}": count for state, count in self._states.items() if count}

    # -- telling
    def _move(self, row: _Row, state: NoticeState, turn: str = "") -> None:
        """The one place that moves a notice, so that its indexes cannot disagree."""
        thread = row.record.task.thread
        home = self._threads[thread]
        if row.state is NoticeState.UNREAD:
            self._unread[thread] -= 1
            if not self._unread[thread]:
                del self._unread[thread]
        elif row.state is NoticeState.LEASED:
            del home.held[row.turn][row.number]
            if not home.held[row.turn]:
                del home.held[row.turn]
        self._states[row.state] -= 1
        self._states[state] += 1
        row.state, row.turn, row.waits = state, turn, False
        if state is NoticeState.UNREAD:
            self._unread[thread] += 1
        elif state is NoticeState.LEASED:
            row.deliveries += 1
            home.held.setdefault(turn, {})[row.number] = row
        elif state is NoticeState.TOLD:
            del home.open[row.number], self._open[row.id]

    async def lease(self, thread: str, turn: str, limit: int, now: float) -> Sequence[Notice]:
        home = self._threads[thread]
        home.claimed_at = now
        if home.waits:
            home.waits = False
            for row in home.open.values():
                if row.waits:
                    self._move(row, NoticeState.UNREAD)
        rows = home.next_unread(turn, limit)
        for row in rows:
            self._move(row, NoticeState.LEASED, turn)
        return self._counting_up(rows)

    def _counting_up(self, rows: Sequence[_Row]) -> Sequence[Notice]:
        """Notices told together count their batch up to where it stands: 3/5, then 4/5."""
        later: Counter[str] = Counter()
        notices: list[Notice] = []
        for row in reversed(rows):
            notice = self._notice(row)
            if notice.batch is not None:
                ended = max(0, notice.batch.ended - later[notice.batch.id])
                later[notice.batch.id] += 1
                notice = replace(notice, batch=replace(notice.batch, ended=ended))
            notices.append(notice)
        notices.reverse()
        return notices

    def _notice(self, row: _Row) -> Notice:
        task = row.task
        batch = self._batches[task.batch].count(task.batch) if task.batch else None
        return Notice(task, row.number, row.nonce, row.deliveries, row.state, batch)

    async def read(self, turn: str, task_id: str, run: int, now: float) -> bool:
        row = self._rows.get(notice_id(task_id, run))
        if row is None or row.state not in OPEN:
            return False
        if row.state is NoticeState.LEASED:
            return row.turn == turn
        self._move(row, NoticeState.LEASED, turn)
        return True

    async def settle(
        self, thread: str, turn: str, notices: Sequence[str], entries: Sequence[Entry], now: float
    ) -> Settled:
        home = self._threads[thread]
        held = {row.id: row for row in home.holds(turn)}
        told: list[str] = []
        gone: list[str] = []
        for id in dict.fromkeys(notices or held):
            if id in held:
                self._move(held[id], NoticeState.TOLD, turn)
            row = self._rows.get(id)
            ours = row is not None and row.state is NoticeState.TOLD and row.turn == turn
            (told if ours else gone).append(id)
        home.append(entries)
        return Settled(tuple(told), tuple(gone))

    async def release(self, thread: str, turn: str, *, failed: bool, parks_after: int) -> Sequence[str]:
        rows = self._threads[thread].holds(turn)
        for row in rows:
            self._give_back(row, failed=failed, parks_after=parks_after)
        return [row.id for row in rows]

    def _give_back(self, row: _Row, *, failed: bool, parks_after: int) -> None:
        row.failures += failed
        parks = failed and row.failures >= parks_after
        self._move(row, NoticeState.PARKED if parks else NoticeState.UNREAD)

    async def notices(
        self, thread: str | None, states: Iterable[NoticeState], limit: int
    ) -> Sequence[Notice]:
        """In the order of their endings."""
        wanted = frozenset(states)
        if thread is None:
            rows = self._open if wanted <= OPEN else self._rows
        else:
            home = self._threads.get(thread) or _Thread()
            rows = home.open if wanted <= OPEN else home.rows
        fitting = (row for row in rows.values() if row.state in wanted)
        return [self._notice(row) for row in islice(fitting, limit)]

    async def unread(self) -> Mapping[str, int]:
        return dict(self._unread)

    async def unpark(self, thread: str) -> int:
        """Somebody looked at it: its failures are forgiven, so that one more does not park it again."""
        home = self._threads.get(thread) or _Thread()
        parked = [row for row in home.open.values() if row.state is NoticeState.PARKED]
        for row in parked:
            row.failures = 0
            self._move(row, NoticeState.UNREAD)
        return len(parked)

    async def park_unclaimed(self, before: float) -> int:
        """An ending younger than `before` is left alone: nobody had the time yet to claim it."""
        parked = 0
        for thread in tuple(self._unread):
            home = self._threads[thread]
            if home.claimed_at >= before:
                continue
            for row in home.open.values():
                if row.state is NoticeState.UNREAD and (row.task.run.ended_at or 0.0) < before:
                    self._move(row, NoticeState.PARKED)
                    row.waits = home.waits = True
                    parked += 1
        return parked

    async def recover(self, parks_after: int) -> int:
        leased = [row for row in self._open.values() if row.state is NoticeState.LEASED]
        for row in leased:
            self._give_back(row, failed=True, parks_after=parks_after)
        return len(leased)

    # -- a transcript of our own
    async def append(self, thread: str, entries: Sequence[Entry]) -> None:
        self._threads[thread].append(entries)

    async def transcript(self, thread: str) -> Sequence[Entry]:
        home = self._threads.get(thread)
        return tuple(home.entries) if home else ()

    async def has_entry(self, thread: str, notice: str) -> bool:
        home = self._threads.get(thread)
        return home is not None and notice in home.entry_notices

    # -- observing, upkeep, files
    async def events(self, after: int, limit: int) -> Sequence[Event]:
        trimmed = self._seq - len(self._events)  # sequence numbers have no gaps: the place is arithmetic
        start = max(0, after - trimmed)
        return self._events[start : start + limit]

    async def forget(self, retention: Retention, now: float) -> int:
        """Oldest endings first; it stops at the first that may stay, so its cost is what it deletes."""
        untold = {row.record.task.id for row in self._open.values()}
        excess = len(self._ended) - len(untold & self._ended.keys()) - retention.history_tasks
        oldest = now - retention.history_seconds
        doomed: list[_Record] = []
        for id, record in self._ended.items():
            if id in untold:
                continue
            if len(doomed) >= excess and (record.task.run.ended_at or 0.0) >= oldest:
                break
            doomed.append(record)
        del self._events[: max(0, len(self._events) - retention.journal_events)]
        return await self._delete(doomed)

    async def purge(self, ids: Sequence[str]) -> int:
        return await self._delete([self._ended[id] for id in dict.fromkeys(ids) if id in self._ended])

    async def _delete(self, records: Sequence[_Record]) -> int:
        for record in records:
            self._drop(record)
        if records:  # once for all: taking them out one by one moves the rest every time
            self._ids = [id for id in self._ids if id in self._records]
        outcomes = (task.outcome for record in records for task in (record.task, *record.runs))
        named = {end.spill.path for end in outcomes if isinstance(end, Completed) and end.spill}
        paths = named & self._spilled  # never a path that is not ours
        if paths:
            self._spilled -= paths
            await asyncio.to_thread(_unlink, paths)
        return len(records)

    def _drop(self, record: _Record) -> None:
        task, home = record.task, self._threads[record.task.thread]
        for row in record.notices:
            if row.state in OPEN:
                self._move(row, NoticeState.TOLD)
            self._states[row.state] -= 1
            del home.rows[row.number], self._rows[row.id]
        self._count(task, -1)
        if task.tool_call_id is not None:
            del self._calls[task.thread, task.tool_call_id]
        if task.batch:
            del self._batches[task.batch].tasks[task.id]
            if not self._batches[task.batch].tasks:
                del self._batches[task.batch]
        home.shown.pop(task.id, None)
        del home.tasks[task.id], self._ended[task.id], self._records[task.id]

    async def spill(self, payload: bytes) -> str:
        if not self._folder:
            self._folder = tempfile.mkdtemp(prefix="meantime-")  # 0700
        path = os.path.join(self._folder, secrets.token_hex(16))
        await asyncio.to_thread(_write, path, payload)
        self._spilled.add(path)
        return path

    async def unspill(self, path: str) -> bytes:
        if path not in self._spilled:
            raise FileNotFoundError(path)
        return await asyncio.to_thread(_read, path)


def _number(numbered: _Record | _Row) -> int:
    return numbered.number


def _birth(record: _Record) -> int:
    return record.born


def _fits(query: Query, task: Task) -> bool:
    return (
        (query.thread is None or task.thread == query.thread)
        and (query.statuses is None or task.status in query.statuses)
        and (query.batch is None or task.batch == query.batch)
        and (query.hidden or not task.hidden)
    )


def _write(path: str, payload: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(payload)


def _read(path: str) -> bytes:
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
        return file.read()


def _unlink(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)
