"""Rows and numbers for people. Each answer costs what it holds, whatever the history."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from meantime.kernel.row_facts import EndingDelivery
from meantime.ports.store import Query

from .checksums import BAD, decode_task
from .commit import encode
from .sql import queries

SQL = queries()


class RowReads(ABC):
    """The part of the store that answers lists; how it reads is the store's own."""

    @abstractmethod
    def _rows(self, sql: str, *values: Any) -> list[Any]: ...

    async def place(self, id: str) -> int | None:
        found = self._rows(SQL["task_at"], id)
        return found[0][0] if found else None

    def _placed(self, query: Query) -> Query:
        """Times as places: tasks are in the order of their birth, so that no index of times is needed."""
        if query.since is None and query.until is None:
            return query
        since = None if query.since is None else self._first_since(query.since)
        until = None if query.until is None else self._first_since(query.until)
        return replace(query, since=since, until=until)

    def _first_since(self, at: float) -> int:
        """The place of the first task that was born then or later; a few looks, whatever the history."""
        ((low, high),) = self._rows(SQL["span_of_tasks"])
        low, high = low or 0, (high or 0) + 1
        while low < high:
            middle = (low + high) // 2
            rows = self._rows(SQL["task_from_place"], middle)
            if not rows:
                high = middle
                continue
            ((place, body),) = rows
            if _born_at(body) < at:
                low = place + 1
            else:
                high = middle
        return low

    async def ended_counts(self) -> Mapping[str, int]:
        return dict(self._rows(SQL["shown_ended_counts"]))

    async def deliveries_of(self, ids: Sequence[str]) -> Mapping[str, EndingDelivery]:
        rows = self._rows(SQL["deliveries_of"], encode(ids).decode())
        return {id: EndingDelivery(*about) for id, *about in rows}

    async def children_of(self, ids: Sequence[str], most: int) -> Mapping[str, int]:
        return dict(self._rows(SQL["children_of"], encode(ids).decode(), most))

    async def held_of(self, threads: Sequence[str], most: int) -> Mapping[str, tuple[int, int]]:
        rows = self._rows(SQL["held_of"], encode(threads).decode(), most)
        return {thread: (leased, parked) for thread, leased, parked in rows}

    async def late(self, before: float, most: int) -> tuple[int, int, int]:
        ((late, every, told),) = self._rows(SQL["late"], before, most)
        return late, every, told


def _born_at(body: bytes) -> float:
    try:
        return decode_task(body).created_at
    except BAD:
        return 0.0  # of a damaged task nobody knows: the search goes on behind it
