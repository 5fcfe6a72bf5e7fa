"""Every row of a damaged database that can still be read, by key where a table cannot be read in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from .contents import StoredRow as TaskRow
from .contents import entry_problem, event_problem, notice_problem, run_problem
from .schedule_rows import ScheduleRow
from .sql import lenient_text
from .wal_mark import WalMark
from .wal_overlay import Overlay

Row = dict[str, Any]
KEYS = {
    "tasks": ("id",),
    "runs": ("task_id", "run"),
    "threads": ("id",),
    "notices": ("thread", "number"),
    "schedules": ("id",),
    "transcripts": ("thread", "position"),
    "events": ("seq",),
}
RENAMED = {"task": "source"}  # columns of older schemas, and what they are called now
MOST_FAILURES = 10_000  # questions about pages that are gone; each takes some tenths of a millisecond
WINDOW = 64  # keys that are tried at once where the highest one is not known
GIVES_UP = 2  # windows of which nothing could be read


class Salvaged:
    """The readable rows of a ledger that was set aside, by table, newest first where there are two of one."""

    def __init__(self, damaged: Path) -> None:
        self.rows: dict[str, dict[tuple[Any, ...], Row]] = {table: {} for table in KEYS}
        self.unreadable: dict[
            str, str
        ] = {}  # ids of tasks that were found and make no sense, and their thread
        self.is_whole = False  # everything that was there has been read
        claimed = WalMark(damaged).claimed()
        try:
            overlay = Overlay(damaged, claimed.salt)
        except OSError:
            return
        self.is_whole = overlay.whole_frames(claimed.salt) >= claimed.frames
        scratch = damaged.with_name(f"{damaged.name}.flat")
        for lenient in (True, False) if overlay.frames else (False,):
            self._read_flat(overlay, scratch, lenient=lenient)

    def _read_flat(self, overlay: Overlay, scratch: Path, *, lenient: bool) -> None:
        try:
            overlay.flatten(scratch, lenient=lenient)
            with closing(sqlite3.connect(f"{scratch.absolute().as_uri()}?immutable=1", uri=True)) as db:
                db.text_factory = lenient_text
                reader = _Reader(db)
                self._read(reader)
                self.is_whole = self.is_whole and reader.is_whole
        except (OSError, sqlite3.Error, UnicodeError):  # even what SQLite says of it may not be UTF-8
            self.is_whole = False
        finally:
            scratch.unlink(missing_ok=True)

    def _read(self, reader: _Reader) -> None:
        for row in reader.by_place("tasks"):
            self._keep_task(row)
        tasks = self.rows["tasks"].values()
        if reader.has("schedules"):  # an older schema has none
            for row in reader.by_place("schedules"):
                found = ScheduleRow(*(row.get(name) for name in ScheduleRow._fields))  # type: ignore[arg-type]
                self._keep_newest("schedules", row, found.problem())
        scheduled = self.rows["schedules"].values()
        for table in ("threads", "runs"):
            self._keep(table, reader.in_order(table))
        threads = {
            *(row["thread"] for row in (*tasks, *scheduled)),
            *(row["id"] for row in self.rows["threads"].values()),
        }
        for thread in sorted(threads):
            self._keep("threads", reader.of("threads", "id = ?", thread))
            self._keep("notices", reader.by_number("notices", "number", thread))
            self._keep("transcripts", reader.by_number("transcripts", "position", thread))
        for row in list(tasks):
            if row["run"] > 1:
                self._keep("runs", reader.of("runs", "task_id = ?", row["id"]))
        self._keep("events", reader.in_order("events"))

    def _keep(self, table: str, rows: Iterator[Row]) -> None:
        for row in map(_without_garbled_turn, rows):
            if _is_garbled(row):
                self.is_whole = False
                continue
            if _PROBLEMS[table](row):
                continue  # it makes no sense: what it says must not come back
            self.rows[table].setdefault(tuple(row[name] for name in KEYS[table]), row)

    def _keep_task(self, row: Row) -> None:
        task = TaskRow(*(row.get(name) for name in TaskRow._fields))  # type: ignore[arg-type]
        self._keep_newest("tasks", row, task.problem())

    def _keep_newest(self, table: str, row: Row, problem: str) -> None:
        """The newest version of a row. One that makes no sense is named in the report."""
        id = row.get("id")
        if problem or _is_garbled(row):
            self.unreadable.setdefault(str(id), str(row.get("thread")))
            return
        known = self.rows[table].get((id,))
        if known is None or known["version"] < row["version"]:
            self.rows[table][(id,)] = row


def _is_garbled(row: Row) -> bool:
    """Whether a text of it is not UTF-8. Such a text was read leniently, and no statement takes it back."""
    texts = (value for value in row.values() if isinstance(value, str))
    return any("\ud800" <= letter <= "\udfff" for text in texts if not text.isascii() for letter in text)


def _without_garbled_turn(row: Row) -> Row:
    """A notice without its delimiter gets another one, and without its turn it was not delivered: neither
    says what happened."""
    if _is_garbled({"nonce": row.get("nonce")}):
        row = {name: value for name, value in row.items() if name != "nonce"}
    if _is_garbled({"turn": row.get("turn")}):
        row = {**row, "turn": None} | ({"state": "unread"} if row.get("state") == "leased" else {})
    return row


_NOTICE = ("thread", "number", "kind", "source", "run", "seq", "at", "stood", "sum", "body")
_EVENT = ("kind", "task_id", "thread", "run", "status", "at", "sum")
_PROBLEMS: dict[str, Callable[[Row], str]] = {
    "runs": lambda row: run_problem(row["task_id"], row["run"], row["body"]),
    "threads": lambda row: "",
    "notices": lambda row: notice_problem(*(row.get(name) for name in _NOTICE)),
    "transcripts": lambda row: entry_problem(row["body"]),
    "events": lambda row: event_problem(*(row.get(name) for name in _EVENT)),
}


class _Reader:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._failures = 0
        self.is_whole = True  # nothing could not be read

    def of(self, table: str, where: str, *values: object) -> Iterator[Row]:
        try:
            yield from self._query(f"SELECT * FROM {table} WHERE {where}", values)
        except sqlite3.Error:
            return

    def has(self, table: str) -> bool:
        return any(self.of("sqlite_schema", "type = 'table' AND name = ?", table))

    def in_order(self, table: str) -> Iterator[Row]:
        """From both ends, as far as the table goes."""
        for order in ("ASC", "DESC"):
            keys = ",".join(f"{key} {order}" for key in KEYS[table])
            try:
                yield from self._query(f"SELECT * FROM {table} ORDER BY {keys}", ())
            except sqlite3.Error:
                continue

    def by_place(self, table: str) -> Iterator[Row]:
        yield from self._by_key(table, "1", (), "seq")

    def by_number(self, table: str, key: str, thread: str) -> Iterator[Row]:
        yield from self._by_key(table, "thread = ?", (thread,), key)

    def _by_key(self, table: str, where: str, values: Sequence[object], key: str) -> Iterator[Row]:
        try:
            asked = self._db.execute(f"SELECT max({key}) FROM {table} WHERE {where}", values)
            highest = asked.fetchone()[0] or 0
        except sqlite3.Error:
            yield from self._by_window(table, where, values, key)
        else:
            yield from self._between(table, where, values, key, 0, highest)

    def _by_window(self, table: str, where: str, values: Sequence[object], key: str) -> Iterator[Row]:
        """The end of the table is gone, so nobody knows how far it went."""
        start, empty = 0, 0
        try:
            for row in self._query(f"SELECT * FROM {table} WHERE {where} ORDER BY {key}", values):
                start = row[key] + 1
                yield row
        except sqlite3.Error:
            pass
        while empty < GIVES_UP and self._failures < MOST_FAILURES:
            found = list(self._between(table, where, values, key, start, start + WINDOW - 1))
            yield from found
            start, empty = start + WINDOW, 0 if found else empty + 1

    def _between(
        self, table: str, where: str, values: Sequence[object], key: str, low: int, high: int
    ) -> Iterator[Row]:
        """A stretch that cannot be read is halved, down to the rows on pages that are gone."""
        stretches = [(low, high)]
        while stretches and self._failures < MOST_FAILURES:
            start, end = stretches.pop()
            query = f"SELECT * FROM {table} WHERE {where} AND {key} BETWEEN ? AND ?"
            try:
                yield from list(self._query(query, (*values, start, end)))
            except sqlite3.Error:
                self._failures += 1
                middle = (start + end) // 2
                if start < end:
                    stretches += [(middle + 1, end), (start, middle)]

    def _query(self, query: str, values: Sequence[object]) -> Iterator[Row]:
        """With the names of the columns: the damaged ledger may have an older schema than ours."""
        try:
            rows = self._db.execute(query, values)
            names = [RENAMED.get(column[0], column[0]) for column in rows.description]
            for row in rows:
                yield dict(zip(names, row, strict=True))
        except sqlite3.Error:
            self.is_whole = False
            raise
