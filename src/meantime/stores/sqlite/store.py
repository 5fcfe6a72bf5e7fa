"""The SQLite store: the contract of ports/store.py on one file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from meantime.kernel.change import Change
from meantime.kernel.errors import InvalidInput, LedgerError
from meantime.kernel.events import Event
from meantime.kernel.ids import prefix_end
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import BatchCount, Task
from meantime.kernel.notices import Message, Notice, NoticeState
from meantime.kernel.retention import Retention
from meantime.ports.store import Committed, Entry, Query, Settled

from . import changing, files, salvage, telling
from .changing import SQL, decode, encode
from .pages import page
from .sql import migrate
from .writer import Writer, translate

_OPEN_STATES = frozenset({NoticeState.UNREAD, NoticeState.LEASED, NoticeState.PARKED})
_FORGET_AT_ONCE = 100  # per transaction, so that nobody waits long behind the upkeep


class SqliteStore:
    """Reads run on the event loop from a connection of their own: they come from an index and cost
    less than the hop to a thread. Writes go through the Writer."""

    def __init__(self, path: Path, durability: str = "full", *, salvage: bool = False) -> None:
        if durability not in ("full", "fast"):
            raise InvalidInput(f"durability={durability!r} is unknown.", hint="Use 'full' or 'fast'.")
        self.path = Path(path).resolve()  # the lock must be the same, whichever link one comes by
        self.saved: dict[str, int] = {}  # rows that a salvage brought over, by table
        self._salvage = salvage
        self._lock = files.Lock(self.path)
        self._reserve = files.Reserve(self.path)
        self._spills = files.Spills(Path(f"{self.path}.files"))
        self._changes = changing.Changes()
        self._writer = Writer(self.path, self._reserve, self._changes, threaded=durability == "full")

    async def open(self) -> None:
        if salvage.is_foreign(self.path, self._lock.path):
            raise LedgerError(
                f"{self.path} is not a ledger of Meantime; nothing was changed.", hint="Name another file."
            )
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock.take()
        except OSError as problem:
            raise _not_opened(self.path, problem) from problem
        try:
            await self._open_database()
        except sqlite3.Error as problem:
            self._lock.drop()
            raise translate(problem, self.path) from problem
        except OSError as problem:
            self._lock.drop()
            raise _not_opened(self.path, problem) from problem
        except BaseException:
            self._lock.drop()
            raise
        self._reserve.keep()

    async def _open_database(self) -> None:
        aside = salvage.last_set_aside(self.path)
        if aside is not None and not self._salvage:
            raise salvage.report(self.path, aside, "")
        files.make_private(self.path)
        try:
            await self._writer.open(self._prepare)
        except (salvage.Damaged, sqlite3.DatabaseError) as damage:
            if isinstance(damage, sqlite3.Error) and not salvage.is_damage(damage):
                raise
            aside = salvage.set_aside(self.path)
            if not self._salvage:
                raise salvage.report(self.path, aside, str(damage)) from damage
            files.make_private(self.path)
            await self._writer.open(self._prepare)
        if aside is not None:
            await self._writer.submit(self._copy, aside / self.path.name)
        self._reader = self._read_only()

    def _read_only(self) -> sqlite3.Connection:
        uri = f"{self.path.as_uri()}?mode=ro"
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)

    def _prepare(self, db: sqlite3.Connection) -> None:
        """After a crash the whole file is checked; after a clean close its schema is enough."""
        problem = salvage.check(db, thorough=not self._lock.was_clean)
        if problem:
            raise salvage.Damaged(problem)
        migrate(db)

    def _copy(self, cursor: sqlite3.Cursor, damaged: Path) -> None:
        cursor.execute("COMMIT")  # the copy makes a transaction of its own
        self.saved = salvage.copy_readable(damaged, cursor.connection)
        cursor.execute("BEGIN")

    async def close(self) -> None:
        self._reader.close()  # before the writer: the last connection takes SQLite's side files away
        await self._writer.close()
        self._reserve.drop()
        self._lock.give_back()

    def commit(self, change: Change) -> asyncio.Future[Committed]:
        archived = None if change.archives is None else encode(change.archives)
        body = encode(change.task)
        return self._writer.submit(
            self._changes.apply, change, body, archived, durable=change.durable, spends=change.replaces == 0
        )

    # -- reading tasks

    async def load(self, id: str) -> Task | None:
        row = self._reader.execute(SQL["task_by_id"], (id,)).fetchone()
        return decode(row[0]) if row else None

    async def find(self, prefix: str, thread: str | None, limit: int) -> Sequence[Task]:
        ours = f"t_{prefix}"
        bounds = (prefix, prefix_end(prefix), ours, prefix_end(ours), thread, limit)
        return self._tasks(SQL["tasks_by_prefix"], bounds)

    async def called(self, thread: str, tool_call: str) -> str | None:
        row = self._reader.execute(SQL["task_of_call"], (thread, tool_call)).fetchone()
        return row[0] if row else None

    async def list(self, query: Query) -> Sequence[Task]:
        return self._tasks(*page(query))

    async def hot(self, thread: str, keep: int) -> Sequence[Task]:
        newest = self._reader.execute(SQL["hot_newest"], (thread, keep)).fetchall()
        oldest = newest[-1][0] if newest else 1 << 62
        untold = self._reader.execute(SQL["hot_untold"], (thread, oldest)).fetchall()
        return [decode(body) for _, body, hidden in (*newest, *untold) if not hidden]

    async def runs(self, task_id: str) -> Sequence[Task]:
        return self._tasks(SQL["runs_of"], (task_id,))

    async def active(self) -> Sequence[Task]:
        return self._tasks(SQL["active_tasks"], ())

    async def batch(self, id: str) -> BatchCount | None:
        return telling.count_batch(self._reader.cursor(), id)

    async def counts(self) -> Mapping[str, int]:
        found: dict[str, int] = dict(self._reader.execute(SQL["count_tasks"]).fetchall())
        for state, count in self._reader.execute(SQL["count_notices"]):
            found[f"notices.{state}"] = count
        if self._reserve.spent:
            found["degraded"] = 1  # the disk was full, and has no room for a new reserve yet
        return found

    def _tasks(self, sql: str, values: Iterable[object]) -> list[Task]:
        return [decode(body) for (body,) in self._reader.execute(sql, tuple(values))]  # pyright: ignore[reportArgumentType]  sqlite3 types its values as Any

    # -- telling

    async def lease(self, thread: str, turn: str, limit: int, now: float) -> Sequence[Notice]:
        # A lease need not outlive a power cut: the notice would only be unread again.
        return await self._writer.submit(telling.lease, thread, turn, limit, now, durable=False)

    async def read(self, turn: str, task_id: str, run: int, now: float) -> bool:
        return await self._writer.submit(telling.read, turn, task_id, run, durable=False)

    async def settle(
        self, thread: str, turn: str, notices: Sequence[str], entries: Sequence[Entry], now: float
    ) -> Settled:
        return await self._writer.submit(telling.settle, thread, turn, notices, entries, now)

    async def release(self, thread: str, turn: str, *, failed: bool, parks_after: int) -> Sequence[str]:
        return await self._writer.submit(telling.release, thread, turn, failed, parks_after, durable=False)

    async def notices(
        self, thread: str | None, states: Iterable[NoticeState], limit: int
    ) -> Sequence[Notice]:
        wanted = frozenset(states)
        name = "open_notices_of" if thread is not None and wanted <= _OPEN_STATES else "notices_in"
        rows = self._reader.execute(SQL[name], (thread, msgspec.json.encode(sorted(wanted)).decode(), limit))
        return [telling.compose(row) for row in rows]

    async def unread(self) -> Mapping[str, int]:
        return dict(self._reader.execute(SQL["unread_by_thread"]).fetchall())

    async def unpark(self, thread: str) -> int:
        return await self._writer.submit(telling.changed, "unpark_all", thread)

    async def park_unclaimed(self, before: float) -> int:
        return await self._writer.submit(telling.changed, "park_unclaimed", before)

    async def recover(self, parks_after: int) -> int:
        return await self._writer.submit(telling.changed, "release_all", parks_after)

    # -- a transcript of our own

    async def append(self, thread: str, entries: Sequence[Entry]) -> None:
        await self._writer.submit(telling.append, thread, entries)

    async def transcript(self, thread: str) -> Sequence[Entry]:
        rows = self._reader.execute(SQL["transcript"], (thread,))
        return [
            Entry(msgspec.json.decode(body, type=Message), notice, position)
            for position, notice, body in rows
        ]

    async def has_entry(self, thread: str, notice: str) -> bool:
        return self._reader.execute(SQL["has_entry"], (thread, notice)).fetchone() is not None

    # -- observing, upkeep, files

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        rows = self._reader.execute(SQL["events_after"], (after, limit))
        return [
            Event(kind, id, thread, run, Status(status), at, seq)
            for kind, id, thread, run, status, at, seq in rows
        ]

    async def forget(self, retention: Retention, now: float) -> int:
        await self._writer.submit(telling.changed, "trim_events", retention.journal_events, durable=False)
        old = (now - retention.history_seconds, retention.history_tasks, _FORGET_AT_ONCE)
        gone = 0
        while found := await asyncio.to_thread(self._forgettable, old):
            deleted = await self._delete("delete_told", found)
            gone += deleted
            if not deleted:
                break  # all of them moved on while we looked
        return gone

    def _forgettable(self, old: tuple[float, int, int]) -> list[tuple[str, bytes]]:
        """It may read the whole history, so it runs beside the loop, on a connection of its own."""
        with closing(self._read_only()) as db:
            return db.execute(SQL["forgettable"], old).fetchall()

    async def purge(self, ids: Sequence[str]) -> int:
        rows = [self._reader.execute(SQL["ended_by_id"], (id,)).fetchone() for id in dict.fromkeys(ids)]
        return await self._delete("delete_ended", [row for row in rows if row])

    async def _delete(self, statement: str, rows: Sequence[tuple[str, bytes]]) -> int:
        spilled = {id: _spilled((decode(body), *await self.runs(id))) for id, body in rows}
        deleted: list[str] = await self._writer.submit(_delete_tasks, statement, list(spilled))
        for id in deleted:
            for path in spilled[id]:
                self._spills.remove(path)
        return len(deleted)

    async def spill(self, payload: bytes) -> str:
        return await asyncio.to_thread(self._spills.write, payload)

    async def unspill(self, path: str) -> bytes:
        return await asyncio.to_thread(self._spills.read, path)


def _not_opened(path: Path, problem: OSError) -> LedgerError:
    hint = "Name a file in a folder that you may write to, on a disk with room."
    return LedgerError(f"{path} cannot be opened: {problem.strerror or problem}.", hint=hint)


def _spilled(tasks: Iterable[Task]) -> list[str]:
    return [task.outcome.spill.path for task in tasks if task.outcome and task.outcome.spill]


def _delete_tasks(cursor: sqlite3.Cursor, statement: str, ids: Sequence[str]) -> list[str]:
    """The statement looks again, in this transaction: what was resumed meanwhile stays."""
    deleted: list[str] = []
    for id in ids:
        row = cursor.execute(SQL[statement], (id,)).fetchone()
        if row:
            deleted.append(id)
            cursor.execute(SQL["delete_runs"], (id,))
            cursor.execute(SQL["delete_notices"], row)
    return deleted
