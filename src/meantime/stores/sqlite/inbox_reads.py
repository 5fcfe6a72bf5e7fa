"""Looking into inboxes: pages of notices, counts, and what became of each. Nothing here settles anything."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from meantime.kernel.inbox_page import InboxEntry, inbox_entry
from meantime.kernel.notices import Notice, NoticeState
from meantime.ports.store import Owed

from . import inbox_transactions
from .checksums import BAD
from .commit import SQL, encode
from .reader_pool import Readers
from .unreadable_rows import Unreadable

T = TypeVar("T")
_OPEN_STATES = frozenset({NoticeState.UNREAD, NoticeState.LEASED, NoticeState.PARKED})


class InboxReads(ABC):
    """The part of the store that looks into inboxes; how it reads is the store's own."""

    _readers: Readers
    _unreadable: Unreadable

    @abstractmethod
    def _rows(self, sql: str, *values: Any) -> list[Any]: ...

    @abstractmethod
    def _read(self, sql: str, values: Sequence[object]) -> list[Any]: ...

    @abstractmethod
    async def _beside(self, read: Callable[..., T], *args: Any) -> T: ...

    @abstractmethod
    def _found(self, notice: Notice) -> Notice: ...

    async def notices(
        self, thread: str | None, states: Iterable[NoticeState], limit: int, offset: int = 0
    ) -> Sequence[Notice]:
        query, chosen = _chosen(_LISTED, thread, states)
        found: list[Notice] = []
        for row in self._rows(query, *chosen, limit, offset):
            try:
                found.append(self._found(inbox_transactions.compose(row)))
            except BAD as problem:
                self._unreadable.note(inbox_transactions.key_of(row), str(problem))
        return found

    async def count_notices(self, thread: str | None, states: Iterable[NoticeState]) -> int:
        wanted = frozenset(states)
        if thread is not None and wanted == _OPEN_STATES:  # as before each request to a model
            return self._rows(SQL["count_every_open_notice_of"], thread)[0][0]
        query, chosen = _chosen(_COUNTED, thread, wanted)
        if "notices_open" in query:  # what is still to be told is little: its index is read on the loop
            return self._rows(query, *chosen)[0][0]
        return (await self._beside(self._read, query, chosen))[0][0]

    async def owed(self, thread: str | None, limit: int) -> Sequence[Owed]:
        return await self._beside(self._owed, thread, limit)

    def _owed(self, thread: str | None, limit: int) -> list[Owed]:
        with self._readers.one() as db:
            names = (
                db.execute(SQL["threads"], (limit,))
                if thread is None
                else db.execute(SQL["thread"], (thread,))
            )
            found = {name: Owed(name, ended_at=at) for name, at in names.fetchall()}
            for name, state, count in db.execute(SQL["owed"], (thread,)).fetchall():
                if name in found:
                    found[name] = found[name]._replace(**{state: count})
        return list(found.values())

    async def inbox(self, thread: str, before: int, limit: int) -> Sequence[InboxEntry]:
        return self._entries(self._rows(SQL["inbox_before"], thread, before, limit))

    async def deliveries(self, task_id: str, limit: int) -> Sequence[InboxEntry]:
        return self._entries(self._rows(SQL["inbox_of_task"], task_id, limit))[::-1]

    def _entries(self, rows: Sequence[Any]) -> list[InboxEntry]:
        found: list[InboxEntry] = []
        for *said, turn, turn_number, failures, parked_for, told_at in rows:
            try:
                notice = self._found(inbox_transactions.compose(said))
            except BAD as problem:
                self._unreadable.note(inbox_transactions.key_of(said), str(problem))
                continue
            found.append(
                inbox_entry(
                    notice,
                    turn=turn,
                    turn_number=turn_number,
                    told_at=told_at,
                    failures=failures,
                    parked_for=parked_for or "",
                )
            )
        return found

    async def count_inbox(self, thread: str, most: int) -> dict[str, int]:
        return {state: count for state, count in self._rows(SQL["count_inbox"], thread, most) if count}


# By whether only what is still to be told is looked at, which has an index of its own, and by thread.
_LISTED = (("notices", "notices_of"), ("open_notices", "open_notices_of"))
_COUNTED = (("count_notices", "count_notices_of"), ("count_open_notices", "count_open_notices_of"))


def _chosen(
    names: tuple[tuple[str, str], tuple[str, str]], thread: str | None, states: Iterable[NoticeState]
) -> tuple[str, tuple[str, ...]]:
    """The query of these four, with its first parameters."""
    wanted = frozenset(states)
    of_all, of_thread = names[wanted <= _OPEN_STATES]
    chosen = encode(sorted(wanted)).decode()
    return (SQL[of_all], (chosen,)) if thread is None else (SQL[of_thread], (chosen, thread))
