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
from typing import Any

from meantime.kernel.errors import LedgerDamaged
from meantime.kernel.model import Task

from .checksums import BAD, decode_task
from .contents import Bad
from .sql import queries

SQL = queries()
MOST = 10_000  # rows that are counted
logger = logging.getLogger("meantime")


class Unreadable:
    """Unreadable rows that were met since the ledger was opened."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._sums: set[int] = set()

    def __len__(self) -> int:
        return len(self._sums)

    def note(self, body: object, problem: str) -> None:
        known = len(self._sums)
        if known < MOST:
            self._sums.add(zlib.crc32(repr(body).encode("utf-8", "surrogatepass")))
        if not known:
            logger.error("The ledger %s has rows that cannot be read (%s).", self._ledger, problem)

    def readable(self, bodies: Iterable[Any]) -> Iterator[Task]:
        for body in bodies:
            try:
                yield decode_task(body)
            except BAD as problem:
                self.note(body, str(problem))

    def one(self, body: Any, id: str) -> Task:
        for task in self.readable([body]):
            if task.id == id:
                return task
            self.note(body, "its columns contradict its body")
        raise LedgerDamaged(
            f"The record of the task {id!r} is damaged and cannot be read.",
            hint="`meantime audit` names every such record. A backup may have it.",
        )


def park(cursor: sqlite3.Cursor, rows: Iterable[Bad]) -> None:
    """The notices of such rows."""
    for row in rows:
        if row.park is not None:
            statement, values = row.park
            cursor.execute(SQL[statement], values)
