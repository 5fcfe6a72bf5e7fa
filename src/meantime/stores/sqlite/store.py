"""The SQLite store: the contract of ports/store.py on one file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from meantime.kernel.change import Change
from meantime.kernel.constraints import check_choice
from meantime.kernel.errors import Closed
from meantime.kernel.ids import prefix_end
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import Retention
from meantime.kernel.model import BatchCount, Event, Task
from meantime.kernel.notices import Notice
from meantime.kernel.stats import Statistics
from meantime.ports.store import Committed, Entry, Query, Settled

from . import commit, counters, inbox_transactions, search_columns
from .checksums import BAD, decode_message, of_event, seal, verify
from .commit import SQL, encode
from .contents import Bad
from .deletion import delete_tasks, spilled
from .disk_reserve import Reserve
from .examination import Examination
from .inbox_reads import InboxReads
from .ledger_file import LedgerFile
from .pages import counting, counting_to, is_narrow, is_scan, page
from .reader_pool import Readers
from .row_reads import RowReads
from .schedule_table import ScheduleTable
from .spilled_files import MovedPayloads, Spills
from .unreadable_rows import Unreadable, park
from .writer import Writer

T = TypeVar("T")
_NEAR = 2_000  # rows that a page may pass over on the loop
_FEW = 20_000  # rows that are counted on the loop
_FORGET_AT_ONCE = 100  # tasks that are looked for at once
# Deleted in one transaction, so that nobody waits long behind the upkeep: three tasks lie on about as many
# pages as a start writes. Rows of the journal lie together, and so do the notices of one task.
_TASKS_AT_ONCE, _ROWS_AT_ONCE = 3, 250


class SqliteStore(InboxReads, RowReads, ScheduleTable):
    """Reads run on the event loop from a connection of their own: they come from an index and cost
    less than the hop to a thread. Writes go through the Writer."""

    def __init__(self, path: Path, durability: str = "full", *, salvage: bool = False) -> None:
        durability = check_choice(durability, "durability", ("full", "fast"))
        self.path = Path(path).resolve()  # the lock must be the same, whichever link one comes by
        self._file = LedgerFile(self.path, salvages=salvage)
        self._reserve = Reserve(self.path)
        self._spills = Spills(Path(f"{self.path}.files"))
        self._beside_ledger = MovedPayloads(self.path)
        self._unreadable = Unreadable(self.path)
        self._changes = commit.Changes()
        doors = (self._file.translate, self._file.checkpointed)
        self._writer = Writer(self.path, self._reserve, self._changes, *doors, threaded=durability == "full")

    async def open(self) -> None:
        await self._file.open(self._writer)
        self._reserve.keep()
        self._readers = Readers(self.path)
        try:
            self._reader = self._readers.connect()
        except sqlite3.Error as problem:  # a disk that fails just now: nothing is held, and it says so
            await self._writer.close()
            self._reserve.drop()
            self._file.close()
            raise self._file.translate(problem) from problem
        self._examination = Examination(
            self.path, self._unreadable, self._with_reader, self._park, self._file.remember
        )
        if self._file.examines == "now":
            await self._examination.now()
        elif self._file.examines:
            self._examination.begin()

    @property
    def is_copy(self) -> bool:
        return self._file.is_copy

    async def own(self) -> None:
        await asyncio.to_thread(self._file.own)

    @property
    def saved(self) -> dict[str, int]:
        """Rows that a salvage brought over, by table."""
        return self._file.saved

    async def close(self) -> None:
        if not await self._examination.stop():
            self._file.remember("")  # the next owner reads on
        self._readers.close()
        self._reader.close()  # before the writer: the last connection takes SQLite's side files away
        await self._writer.close()
        self._reserve.drop()
        self._file.close()

    def commit(self, change: Change) -> asyncio.Future[Committed]:
        archived = None if change.archives is None else seal(encode(change.archives))
        body = seal(encode(change.task))
        return self._writer.submit(
            self._changes.apply,
            change,
            body,
            archived,
            durable=change.durable,
            spends=change.replaces == 0,
            collects=True,
        )

    # -- reading tasks

    async def load(self, id: str) -> Task | None:
        row = self._row(SQL["task_by_id"], id)
        return self._beside_ledger.found(self._unreadable.one(row[0], id)) if row else None

    async def find(self, prefix: str, thread: str | None, limit: int) -> Sequence[Task]:
        ours = f"t_{prefix}"
        bounds = (prefix, prefix_end(prefix), ours, prefix_end(ours), thread, limit)
        return self._tasks(SQL["tasks_by_prefix"], bounds)

    async def called(self, thread: str, tool_call: str) -> str | None:
        row = self._row(SQL["task_of_call"], thread, tool_call)
        return row[0] if row else None

    async def list(self, query: Query) -> Sequence[Task]:
        query = self._placed(query)
        sql, values = page(query)
        if not is_scan(query) and query.offset <= _NEAR:
            return self._tasks(sql, values)
        return self._decode(body for (body,) in await self._beside(self._read, sql, values))

    async def count(self, query: Query, most: int | None = None) -> int:
        if not is_narrow(query):
            return self._query(lambda db: counters.count(db, query, most))
        query = self._placed(query)
        sql, values = counting(query) if most is None else counting_to(query, most)
        if not is_scan(query) and (most is not None or self._is_small()):
            return self._rows(sql, *values)[0][0]
        return (await self._beside(self._read, sql, values))[0][0]

    def _is_small(self) -> bool:
        """Then counting takes less time than handing it to a thread, which has to wait for its turn
        with the interpreter, and then again for every row, while the loop is busy."""
        oldest, newest = self._row(SQL["span_of_tasks"])
        return (newest or 0) - (oldest or 0) < _FEW

    async def statistics(self, thread: str | None) -> Statistics:
        if thread is None:
            return self._query(counters.statistics)
        return search_columns.gather(await self._beside(self._read, SQL["statistics_of"], [thread]))

    async def hot(self, thread: str, keep: int) -> Sequence[Task]:
        newest = self._rows(SQL["hot_newest"], thread, keep)
        oldest = newest[-1][0] if newest else 1 << 62
        untold = self._rows(SQL["hot_untold"], thread, oldest)
        return self._decode(body for _, body, hidden in (*newest, *untold) if not hidden)

    async def runs(self, task_id: str) -> Sequence[Task]:
        return self._tasks(SQL["runs_of"], (task_id,))

    async def children(self, parent: str, limit: int) -> Sequence[Task]:
        return self._tasks(SQL["child_tasks"], (parent, limit))

    async def active(self) -> Sequence[Task]:
        return self._tasks(SQL["active_tasks"], ())

    async def following(self) -> Sequence[Task]:
        return self._tasks(SQL["tasks_following"], ())

    async def batch(self, id: str, thread: str | None = None) -> BatchCount | None:
        return counters.batch_count(id, self._rows(SQL["batch_count"], id, thread))

    async def counts(self) -> Mapping[str, int]:
        found = dict(self._query(counters.counts))
        if self._reserve.spent or self._writer.failed_sync or self._writer.removed:
            found["degraded"] = 1  # no room for a new reserve yet, no sync since one failed, or no ledger
        if self._unreadable:
            found["unreadable"] = len(self._unreadable)
        if self._examination.is_under_way:
            found["checking"] = 1  # after an unclean stop
        if self._examination.damage:
            found["damaged"] = 1
        return found

    def _park(self, bad: Sequence[Bad]) -> asyncio.Future[None]:
        return self._writer.submit(park, bad)

    # -- how it reads

    def _rows(self, sql: str, *values: Any) -> list[Any]:
        return self._query(lambda db: db.execute(sql, values).fetchall())

    def _query(self, read: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return read(self._reader)
        except sqlite3.ProgrammingError:
            raise Closed from None
        except sqlite3.Error as problem:
            raise self._file.translate(problem) from problem

    async def _beside(self, read: Callable[..., T], *args: Any) -> T:
        """For what may read the whole history: off the loop, on a connection of its own."""
        try:
            return await asyncio.to_thread(read, *args)
        except sqlite3.Error as problem:
            raise self._file.translate(problem) from problem

    async def _with_reader(self, read: Callable[..., T], *args: Any) -> T:
        def reading() -> T:
            with self._readers.one() as db:
                return read(db, *args)

        return await self._beside(reading)

    def _row(self, sql: str, *values: Any) -> Any:
        return next(iter(self._rows(sql, *values)), None)

    def _read(self, sql: str, values: Sequence[object]) -> list[Any]:
        with self._readers.one() as db:
            return db.execute(sql, values).fetchall()

    def _tasks(self, sql: str, values: Iterable[Any]) -> list[Task]:
        return self._decode(body for (body,) in self._rows(sql, *values))

    def _decode(self, bodies: Iterable[Any]) -> list[Task]:
        return [self._beside_ledger.found(task) for task in self._unreadable.readable(bodies)]

    def _found(self, notice: Notice) -> Notice:
        if notice.about is None:
            return notice
        task = self._beside_ledger.found(notice.about)
        return notice if task is notice.about else msgspec.structs.replace(notice, about=task)

    # -- telling

    async def lease(self, thread: str, turn: str, limit: int, now: float) -> Sequence[Notice]:
        # A lease need not outlive a power cut: the notice would only be unread again.
        leased = await self._writer.submit(inbox_transactions.lease, thread, turn, limit, now, durable=False)
        return [self._found(notice) for notice in leased]

    async def read(self, turn: str, task_id: str, run: int, now: float) -> bool:
        return await self._writer.submit(inbox_transactions.read, turn, task_id, run, now, durable=False)

    async def settle(
        self, thread: str, turn: str, notices: Sequence[str], entries: Sequence[Entry], now: float
    ) -> Settled:
        return await self._writer.submit(inbox_transactions.settle, thread, turn, notices, entries, now)

    async def told_by(self, turn: str, notices: Sequence[str], thread: str | None) -> Sequence[str]:
        # In the writer's queue: behind a settle of the same turn that is still on its way.
        return await self._writer.submit(inbox_transactions.told_by, turn, notices, thread, durable=False)

    async def release(self, thread: str, turn: str, *, failed: bool, parks_after: int) -> Sequence[str]:
        return await self._writer.submit(
            inbox_transactions.release, thread, turn, failed, parks_after, durable=False
        )

    async def unread(self) -> Mapping[str, int]:
        # In the writer's queue: then it holds exactly the commits that were heard of before it.
        return dict(await self._writer.submit(inbox_transactions.rows, "unread_by_thread", durable=False))

    async def unpark(self, thread: str, notices: Sequence[str] | None = None) -> int:
        return await self._writer.submit(inbox_transactions.unpark, thread, notices)

    async def park_unclaimed(self, before: float, spare: Sequence[str]) -> int:
        spared = encode(spare).decode()
        return await self._writer.submit(inbox_transactions.changed, "park_unclaimed", before, spared)

    async def recover(self, parks_after: int) -> int:
        return await self._writer.submit(inbox_transactions.changed, "release_all", parks_after)

    # -- a transcript of our own

    async def append(self, thread: str, entries: Sequence[Entry]) -> None:
        await self._writer.submit(inbox_transactions.append, thread, entries)

    async def transcript(self, thread: str) -> Sequence[Entry]:
        entries: list[Entry] = []
        for position, notice, body in self._rows(SQL["transcript"], thread):
            try:
                entries.append(Entry(decode_message(body), notice, position))
            except BAD as problem:
                self._unreadable.note(body, str(problem))
        return entries

    async def has_entry(self, thread: str, notice: str) -> bool:
        return self._row(SQL["has_entry"], thread, notice) is not None

    # -- observing, upkeep, files

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        """One that cannot be read is passed over, even where only one is asked for."""
        found: list[Event] = []
        while True:
            rows = self._rows(SQL["events_after"], after, limit)
            for seq, *said, stored in rows:
                after = seq
                try:
                    found.append(_event(seq, said, stored))
                except BAD as problem:
                    self._unreadable.note(seq, str(problem))
            if found or len(rows) < max(1, limit):
                return found

    async def last_event(self) -> int:
        return self._row(SQL["last_event"])[0] or 0

    async def forget(self, retention: Retention, now: float) -> int:
        await self._delete_rows("trim_events", max(1, retention.journal_events), durable=False)
        for (source,) in await self._beside(
            self._read, SQL["sources_of_many_events"], [retention.told_events]
        ):
            await self._delete_rows("prune_events", source, retention.told_events)
        await self._forget_schedules(retention, now)
        old = (now - retention.history_seconds, retention.history_tasks, _FORGET_AT_ONCE)
        gone = 0
        while found := await self._beside(self._forgettable, old):
            deleted = 0
            for at in range(0, len(found), _TASKS_AT_ONCE):
                deleted += await self._delete("delete_told", found[at : at + _TASKS_AT_ONCE])
            gone += deleted
            if not deleted:
                break  # all of them moved on while we looked
        return gone

    async def _delete_rows(self, statement: str, *args: object, durable: bool = True) -> None:
        """In steps: a million rows in one transaction would hold up every commit for seconds."""
        step = (inbox_transactions.changed, statement, *args, _ROWS_AT_ONCE)
        while await self._writer.submit(*step, durable=durable) == _ROWS_AT_ONCE:
            continue

    def _forgettable(self, old: tuple[float, int, int]) -> list[tuple[str, bytes]]:
        with self._readers.one() as db:
            return db.execute(SQL["forgettable"], old).fetchall()

    async def purge(self, ids: Sequence[str], now: float | None = None) -> int:
        rows = [self._row(SQL["ended_by_id"], id) for id in dict.fromkeys(ids)]
        return await self._delete("delete_ended", [row for row in rows if row], now)

    async def _delete(
        self, statement: str, rows: Sequence[tuple[str, bytes]], now: float | None = None
    ) -> int:
        files = {id: spilled((*self._decode([body]), *await self.runs(id))) for id, body in rows}
        deleted: list[str] = await self._writer.submit(
            delete_tasks, self._changes, statement, list(files), now
        )
        for id in deleted:
            for path in files[id]:
                self._spills.remove(path)
        return len(deleted)

    async def spill(self, payload: bytes) -> str:
        return await asyncio.to_thread(self._spills.write, payload)

    async def unspill(self, path: str) -> bytes:
        return await asyncio.to_thread(self._spills.read, path)


def _event(seq: int, said: Sequence[Any], stored: int | None) -> Event:
    kind, id, thread, run, status, at = said
    verify(stored, of_event(kind, id, thread, run, status, at))
    return Event(kind, id, thread, run, Status(status), at, seq)
