"""One connection writes. All changes that wait when a commit starts share it.

`full` writes on a thread of its own, where one fdatasync serves a whole group; `fast` writes on the
event loop, once per tick, without fdatasync. Checkpoints belong to the writer: SQLite's own would
stall readers, and while nobody else performs checkpoints its WAL-reset bug (before 3.51.3) cannot happen.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

from meantime.kernel.errors import Closed, Degraded, LedgerError, MeantimeError

from . import checkpoints
from .commit import RowRefused
from .connection import BUSY, connect
from .disk_reserve import Reserve
from .salvage import rescue, set_wal_aside
from .wal_mark import WalMark
from .write_errors import disk_full, is_failed_sync, is_full, maybe_written, sync_failed

Operation = Callable[..., Any]
Translate = Callable[[sqlite3.Error], MeantimeError]
MAX_GROUP = 512  # bounds how long one commit can take, and so how long anybody waits for it
PATIENCE = 10.0  # seconds that a close waits for the disk
WAL_IDLE = 1 << 20  # above this, checkpoint when nothing waits: often, as the next commit waits for all of it
WAL_FULL = 4 << 20  # above this, checkpoint now
WAL_AGAIN = 1 << 20  # bytes by which the WAL grows until a checkpoint is tried again that a reader hindered
WAL_SOON = 64 << 10  # the same, where the disk did not take it
WAL_MOST = 64 << 20  # above this, a checkpoint waits for readers, and commits wait with it


class Write(NamedTuple):
    operation: Operation
    args: tuple[Any, ...]
    future: asyncio.Future[Any]
    durable: bool
    spends: bool  # brings new work, so it is refused while the disk is full
    collects: bool  # does not read the rows that its group holds back


class Group(Protocol):
    """State that operations keep for their whole group: written before the commit, dropped with it. Rows
    that were collected are also written before an operation that may read them. `together`: operations may
    collect rows that can be refused; RowRefused then stands for all of them."""

    together: bool

    def write_rows(self, cursor: sqlite3.Cursor) -> None: ...

    def finish(self, cursor: sqlite3.Cursor) -> None: ...

    def forget(self) -> None: ...


class Writer:
    """Runs operations `fn(cursor, *args)` in transactions and resolves their futures in order."""

    def __init__(
        self,
        path: Path,
        reserve: Reserve,
        group: Group,
        translate: Translate,
        checkpointed: Callable[[int], None],
        *,
        threaded: bool,
    ) -> None:
        self._path = path
        self._checkpointed = checkpointed
        self._again_over = 0  # bytes that are not in the database, after a reader hindered a checkpoint
        self._mark = WalMark(path)
        self._translate = translate
        self._group = group
        self._wal = Path(f"{path}-wal")
        self._reserve = reserve
        self._threaded = threaded
        self._waiting: SimpleQueue[Write | None] = SimpleQueue()
        self._pending: list[Write] = []
        self._closed = True
        self._full_sync = True
        self.failed_sync = False  # of the last durable commit, or of a checkpoint since
        self._unwritten = False  # what the disk has of the WAL is not known
        self.removed = False  # the ledger was removed or replaced: nothing more is written
        self._identity: tuple[int, int] | None = None

    async def open(self, setup: Callable[[sqlite3.Connection], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._db = connect(self._path)
        try:
            setup(self._db)
            self._mark.begin(checkpoints.number_now(self._db))
        except BaseException:
            self._db.close()
            self._mark.close()
            raise
        self._cursor = self._db.cursor()
        self._identity = _identity(self._path)
        self._closed = False
        if self._threaded:
            self._thread = threading.Thread(target=self._serve, name="meantime-writer", daemon=True)
            self._thread.start()

    def submit(
        self,
        operation: Operation,
        *args: Any,
        durable: bool = True,
        spends: bool = False,
        collects: bool = False,
    ) -> asyncio.Future[Any]:
        future = self._loop.create_future()
        if self._closed:
            future.set_exception(Closed())
            return future
        write = Write(operation, args, future, durable and self._threaded, spends, collects)
        if self._threaded:
            self._waiting.put(write)
        else:
            if not self._pending:
                self._loop.call_soon(self._flush)
            self._pending.append(write)
        return future

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._threaded:
            self._waiting.put(None)
            await asyncio.to_thread(self._thread.join, PATIENCE)
            if self._thread.is_alive():
                return  # the disk does not answer: the thread is left to the process
        else:
            self._flush()
        with self._noting_failed_sync():
            is_empty = not os.stat(self._wal).st_size
            try:
                is_empty = is_empty or self._perform_checkpoint(lambda: self._empty_wal(BUSY))
            finally:
                if not is_empty:
                    self._mark.settle()
        self._cursor.close()  # after a failed write it holds a statement, which would hold the files
        self._db.close()
        self._mark.close()

    # -- on the writer's thread, or on the loop in the fast profile

    def _serve(self) -> None:
        while True:
            group, last = self._next_group()
            if group:
                done = self._commit(group)
                self._loop.call_soon_threadsafe(_resolve, done)
            if last:
                return
            self._checkpoint(WAL_IDLE if self._waiting.empty() else WAL_FULL)

    def _next_group(self) -> tuple[list[Write], bool]:
        first = self._waiting.get()
        if first is None:
            return [], True
        group = [first]
        while len(group) < MAX_GROUP and not self._waiting.empty():
            write = self._waiting.get()
            if write is None:
                return group, True
            group.append(write)
        return group, False

    def _flush(self) -> None:
        while self._pending:
            group, self._pending = self._pending[:MAX_GROUP], self._pending[MAX_GROUP:]
            _resolve(self._commit(group))
        self._checkpoint(WAL_FULL)

    def _commit(self, group: list[Write]) -> list[tuple[asyncio.Future[Any], Any]]:
        """A group that fails is replayed one by one, so that nobody pays for a neighbour; but not where the
        disk failed to sync, which is nobody's own fault."""
        if not self._reserve.spent:
            try:
                return list(zip((write.future for write in group), self._together(group), strict=True))
            except Exception as problem:
                if is_failed_sync(problem):
                    return [(write.future, self._not_synced()) for write in group]
        return [(write.future, self._alone(write)) for write in group]

    def _together(self, group: list[Write]) -> list[Any]:
        self._group.together = len(group) > 1
        try:
            return self._transact(group)
        except RowRefused:
            self._group.together = False
            return self._transact(group)
        finally:
            self._group.together = False

    def _transact(self, group: list[Write]) -> list[Any]:
        self._check_names()
        self._write_anew()
        is_durable = any(write.durable for write in group)
        self._set_sync(is_durable)
        cursor = self._cursor
        cursor.execute("BEGIN IMMEDIATE")
        try:
            results: list[Any] = []
            for write in group:
                if not write.collects:
                    self._group.write_rows(cursor)
                results.append(write.operation(cursor, *write.args))
            self._group.finish(cursor)
            cursor.execute("COMMIT")
        except BaseException:
            self._group.forget()
            if self._db.in_transaction:
                cursor.execute("ROLLBACK")
            raise
        self._mark.move(synced=is_durable)
        self.failed_sync = self.failed_sync and self._threaded and not is_durable
        return results

    def _not_synced(self) -> MeantimeError:
        """The disk could not sync. The kernel may have dropped what it could not write, and calls it written:
        a second sync would succeed and prove nothing. So the write is refused, its frames are cut off, and
        everything is written anew: now if that is possible, and otherwise before the next commit."""
        is_cut = self._mark.trim()
        if not self._unwritten:
            self.failed_sync = self._unwritten = True
            with contextlib.suppress(sqlite3.Error, Degraded):
                self._write_anew()
        return sync_failed() if is_cut else maybe_written()

    def _write_anew(self) -> None:
        """All pages of the WAL go to the database, which is synced; then the WAL begins anew."""
        if not self._unwritten:
            return
        try:
            is_empty = self._truncate_wal()
        except OSError as problem:
            raise sync_failed() from problem
        if not is_empty:
            raise sync_failed()
        self._unwritten = False

    def _truncate_wal(self) -> bool:
        with self._mark.lifted():
            if self._unwritten:
                self._mark.write_again()
            (busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not busy

    def _check_names(self) -> None:
        """Commits to a file that has lost its name would be lost with this process."""
        is_there = _identity(self._path) == self._identity
        if is_there and self._mark.has_wal() and not self.removed:
            return
        if not self.removed:
            self.removed = True
            self._rescue(is_there)
        raise LedgerError(
            f"The ledger {self._path}, or its WAL, was removed or replaced while it was open.",
            hint="Nothing more is recorded. Close this Meantime and open it again: it says what was saved.",
        )

    def _rescue(self, is_there: bool) -> None:
        """Once: everything can still be read here, so it is written to where the next owner finds it."""
        with contextlib.suppress(OSError, sqlite3.Error):
            if not is_there:
                rescue(self._db, self._path)
            else:
                with self._mark.lifted():
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                set_wal_aside(self._path)  # another one that has its name: SQLite would apply it

    def _alone(self, write: Write) -> Any:
        if write.spends and self._reserve.spent and not self._reserve.keep():
            return disk_full()
        try:
            return self._transact([write])[0]
        except sqlite3.Error as problem:
            if is_failed_sync(problem):
                return self._not_synced()
            if not is_full(problem):
                return self._translate(problem)
            if write.spends:
                self._reserve.spent = True  # not the reserve, but the disk is as full as if it were
                return disk_full()
            if not self._reserve.spend():
                return disk_full()
        except Exception as problem:
            return problem
        return self._alone(write)  # once more, with what the reserve gave back

    def _set_sync(self, full: bool) -> None:
        if full != self._full_sync:
            self._cursor.execute(f"PRAGMA synchronous={'FULL' if full else 'NORMAL'}")
            self._full_sync = full

    def _checkpoint(self, over: int) -> None:
        with self._noting_failed_sync():
            used, waiting = self._used_bytes()
            self._again_over = min(self._again_over, waiting + WAL_AGAIN)  # others perform checkpoints, too
            if waiting <= max(over, self._again_over):
                return
            self._again_over = waiting + WAL_SOON  # a full disk has room when the reserve is spent
            if used >= WAL_MOST or not self._mark.used_bytes():
                patience = BUSY if used >= WAL_MOST else 0
                is_done = self._perform_checkpoint(lambda: self._empty_wal(patience))
            else:
                is_done = self._perform_checkpoint(self._fill_database)
            self._again_over = 0 if is_done else self._used_bytes()[1] + WAL_AGAIN

    def _used_bytes(self) -> tuple[int, int]:
        if (known := self._mark.used_bytes()) is not None:
            return known
        size = os.stat(self._wal).st_size
        return size, size

    def _perform_checkpoint(self, way: Callable[[], bool]) -> bool:
        """False if a reader hinders it. A full disk, on which the number cannot be raised, needs the
        checkpoint all the same, and an empty WAL."""
        number = self._count_checkpoint()
        is_done = way() if number is not None else self._empty_wal(0)
        if is_done and number is not None:
            self._checkpointed(number)
        return is_done

    @contextmanager
    def _noting_failed_sync(self) -> Generator[None]:
        """After any other error the WAL stays, and the next checkpoint tries again."""
        try:
            yield
        except (OSError, sqlite3.Error) as problem:
            if is_failed_sync(problem):
                self.failed_sync = self._unwritten = True

    def _fill_database(self) -> bool:
        """The next commit begins the WAL anew, in the same blocks of the disk: a sync then has no change of
        the file itself to write, and takes a fraction of the time that it takes for a file that grows."""
        (busy, frames, filled) = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        return not busy and frames == filled

    def _empty_wal(self, patience: int) -> bool:
        """While we wait for a reader, every commit waits with us."""
        self._db.execute(f"PRAGMA busy_timeout={patience}")
        try:
            return self._truncate_wal()
        finally:
            self._db.execute(f"PRAGMA busy_timeout={BUSY}")

    def _count_checkpoint(self) -> int | None:
        """None where it cannot be counted: on a full disk."""
        if self.removed:
            return None
        with contextlib.suppress(sqlite3.Error):
            self._set_sync(False)  # the checkpoint syncs it
            number = checkpoints.raised(self._cursor)
            self._mark.needs = number + 1  # from the next commit on
            return number
        return None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


def _resolve(done: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, result in done:
        if future.done():  # its waiter is gone; what was written stays written
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
