"""Reads all contents of a ledger: before it is opened where that is short, otherwise in the background."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from meantime.kernel.errors import MeantimeError

from .contents import TABLES, Bad, Table, unindexed
from .unreadable_rows import Unreadable

PAUSE = 2.0  # times the CPU time of a slice: at most a third of one core is used
logger = logging.getLogger("meantime")
# Runs a read off the loop, on a connection of its own.
Beside = Callable[..., Awaitable[Any]]
Park = Callable[[Sequence[Bad]], Awaitable[object]]


class Examination:
    """`beside` and `park` are the store's; `found_damage` remembers damage to the structure, so that the next
    open checks the whole file."""

    def __init__(
        self,
        ledger: Path,
        unreadable: Unreadable,
        beside: Beside,
        park: Park,
        found_damage: Callable[[str], None],
    ) -> None:
        self._ledger = ledger
        self._unreadable = unreadable
        self._beside = beside
        self._park = park
        self._found_damage = found_damage
        self._task: asyncio.Task[None] | None = None
        self.damage = ""  # to the structure

    @property
    def is_under_way(self) -> bool:
        return self._task is not None and not self._task.done()

    async def now(self) -> None:
        """SQLite has compared the indexes of a small ledger already."""
        await self._read(is_small=True)

    def begin(self) -> None:
        self._task = asyncio.create_task(self._in_background())

    async def stop(self) -> bool:
        """Whether it had come to its end."""
        was_done = not self.is_under_way
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        return was_done

    async def _in_background(self) -> None:
        began = time.monotonic()
        slices = await self._read(is_small=False)
        if self.damage:
            text = "The ledger %s is damaged (%s). Close it and open it again: it says what can be saved."
            logger.error(text, self._ledger, self.damage)
            return
        text = "The ledger %s was read after an unclean stop: %d slices in %.0f s; %d rows cannot be read."
        logger.info(text, self._ledger, slices, time.monotonic() - began, len(self._unreadable))

    async def _read(self, *, is_small: bool) -> int:
        slices = 0
        try:
            for table in TABLES:
                after: tuple[Any, ...] | None = table.first
                while after is not None and not self.damage:
                    spent, (bad, after) = await self._beside(_slice, table, after, self._note, is_small)
                    await self._quarantine(bad)
                    slices += 1
                    if not is_small:
                        await asyncio.sleep(PAUSE * spent)
        except MeantimeError as problem:  # the store remembers it, if it is damage
            self.damage = self.damage or str(problem)
        return slices

    async def _quarantine(self, bad: Sequence[Bad]) -> None:
        for row in bad:
            self._unreadable.note(row.key, f"{row.what}: {row.problem}")
        if any(row.park for row in bad):
            await self._park(bad)

    def _note(self, damage: str) -> None:
        self.damage = damage
        self._found_damage(damage)


def _slice(
    db: sqlite3.Connection, table: Table, after: tuple[Any, ...], note: Callable[[str], None], is_small: bool
) -> tuple[float, tuple[list[Bad], tuple[Any, ...] | None]]:
    """With the CPU time that it took."""
    began = time.thread_time()
    if not is_small and (lacking := unindexed(db, table, after)):
        note(lacking)
    found = table.slice(db, after)
    return time.thread_time() - began, found
