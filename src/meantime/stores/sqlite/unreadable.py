"""Rows whose contents cannot be read, in a database that is sound otherwise.

Such a row is left where it is and left out of everything that is read; its notice is parked, so that its
thread goes on. How many there are is in the statistics, and `meantime audit` names them.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from meantime.kernel.errors import LedgerDamaged
from meantime.kernel.model import Task

from .sql import queries

SQL = queries()
MOST = 10_000  # rows that are counted
CHUNK = 500  # rows that are looked at in one go
BAD = (msgspec.MsgspecError, ValueError, TypeError)  # text that is not UTF-8, a body that is a number
logger = logging.getLogger("meantime")
_decode = msgspec.json.Decoder(Task).decode


class Row(NamedTuple):
    """Of a task, as its columns tell it."""

    seq: int
    id: str
    thread: str
    status: str
    run: int
    body: Any

    def problem(self) -> str:
        """Why it cannot be used, or the empty string. The columns repeat what the body says."""
        try:
            task = _decode(self.body)
        except BAD as problem:
            return str(problem)
        said = (task.id, task.thread, task.status, task.run.number)
        return "" if said == self[1:5] else "its columns contradict its body"


class Unreadable:
    """What was met of them since the ledger was opened."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._sums: set[int] = set()

    def __len__(self) -> int:
        return len(self._sums)

    def note(self, body: object, problem: str) -> None:
        known = len(self._sums)
        if known < MOST:
            self._sums.add(zlib.crc32(repr(body).encode()))
        if not known:
            logger.error("The ledger %s has rows that cannot be read (%s).", self._ledger, problem)

    def readable(self, bodies: Iterable[Any]) -> Iterator[Task]:
        for body in bodies:
            try:
                yield _decode(body)
            except BAD as problem:
                self.note(body, str(problem))

    def one(self, body: Any, id: str) -> Task:
        for task in self.readable([body]):
            return task
        raise LedgerDamaged(
            f"The record of the task {id!r} is damaged and cannot be read.",
            hint="`meantime audit` names every such record. A backup may have it.",
        )


def find(db: sqlite3.Connection, after: int = 0) -> tuple[list[tuple[Row, str]], int]:
    """The bad rows of the next chunk, and the last place that was looked at; 0 when there is no more."""
    rows = [Row(*row) for row in db.execute(SQL["contents"], (after, CHUNK))]
    bad = [(row, problem) for row in rows if (problem := row.problem())]
    return bad, rows[-1].seq if rows else 0


def find_all(db: sqlite3.Connection) -> Iterator[tuple[Row, str]]:
    last = -1
    while last:
        bad, last = find(db, last)
        yield from bad


def park(cursor: sqlite3.Cursor, seqs: Iterable[int]) -> None:
    cursor.executemany(SQL["park_unreadable"], [(seq,) for seq in seqs])
