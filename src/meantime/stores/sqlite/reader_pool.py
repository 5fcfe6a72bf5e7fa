"""Connections that only read, for whoever reads off the event loop. Opening one costs more than most
questions do, so a few are kept."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from .sql import lenient_text

KEPT = 4


class Readers:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._idle: list[sqlite3.Connection] = []  # its pop and append are safe from every thread
        self._closed = False

    def connect(self) -> sqlite3.Connection:
        uri = f"{self._path.as_uri()}?mode=ro"
        db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        db.text_factory = lenient_text
        return db

    @contextmanager
    def one(self) -> Generator[sqlite3.Connection]:
        """For one question. A failure of one connection does not affect the next."""
        try:
            db = self._idle.pop()
        except IndexError:
            db = self.connect()
        try:
            yield db
        except BaseException:
            db.close()
            raise
        self._idle.append(db)
        if self._closed or len(self._idle) > KEPT:
            self._drop()

    def close(self) -> None:
        self._closed = True
        while self._idle:
            self._drop()

    def _drop(self) -> None:
        try:
            self._idle.pop().close()
        except IndexError:
            return  # another thread has it
