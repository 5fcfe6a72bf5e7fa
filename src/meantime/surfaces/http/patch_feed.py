"""Follows the journal for pages that show rows: what changed in a tenth of a second is one event."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Mapping

from meantime.kernel.errors import Ambiguous, NotFound
from meantime.kernel.model import Event, Task
from meantime.kernel.notices import NoticeState
from meantime.ports.store import Query
from meantime.ports.tasks import Tasks

from .event_feed import JournalFeed
from .responses import encode
from .row_encoding import rows_of, wire_overview
from .row_patch import EncodedRow, GoneRow, Patch
from .row_schemas import Row
from .snapshot import bounded_tasks

AT_ONCE = 1_000  # events of the journal in one round
PIECE = 250  # rows of one patch
LOOK = 1.0  # seconds between two looks at what changes without an event: output, delivery, places in queues
LOOKED_AT = 200  # rows of one look
MOST_OPEN = 2_000  # rows that are looked at in turn
IDLE_OVERVIEW = 10.0  # seconds after which the overview is made again, even if nothing happened
_OPEN = frozenset({NoticeState.UNREAD, NoticeState.LEASED, NoticeState.PARKED})


class PatchFeed(JournalFeed[Patch]):
    _overview = b""
    _overview_at = float("-inf")  # on the monotonic clock, as the next
    _looked_at = float("-inf")
    _is_stale = False  # something happened since the overview was made
    _waiting: asyncio.Task[None] | None = None

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        # Rows that can change without an event, as they were sent; the one that was looked at last is last.
        self._open: OrderedDict[str, EncodedRow] = OrderedDict()

    async def _news(self) -> None:
        """An event, or the time for a look. The wait for events goes on over several looks."""
        if self._waiting is None or self._waiting.done():
            self._waiting = asyncio.create_task(self._tasks.wait_events(self.seq))
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        alarm = self._clock.call_later(LOOK, lambda: over.done() or over.set_result(None))
        try:
            await asyncio.wait({self._waiting, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
        if self._waiting.done():
            waited, self._waiting = self._waiting, None
            waited.result()

    async def _stop(self) -> None:
        await super()._stop()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await waiting
        self._open.clear()

    async def _publish(self) -> None:
        events = await self._tasks.events(self.seq, AT_ONCE)
        self._is_stale = self._is_stale or bool(events)
        changed = {event.task_id: event for event in events}
        rows, gone = await encoded_rows(self._tasks, {id: event.thread for id, event in changed.items()})
        seen, deleted = await self._look(changed)
        rows, gone = [row for row in (*rows, *seen) if self._is_news(row)], [*gone, *deleted]
        overview = await self._new_overview()
        before, self.seq = self.seq, events[-1].seq if events else self.seq
        pieces = [rows[at : at + PIECE] for at in range(0, len(rows), PIECE)]
        for piece in pieces[:-1]:  # whoever is cut off behind one of these has not seen the rest
            self.ring.publish(Patch.of(before, piece, (), b""))
            await self._let_read()
        if rows or gone or overview:
            self.ring.publish(Patch.of(self.seq, pieces[-1] if pieces else (), gone, overview))

    async def _look(self, changed: dict[str, Event]) -> tuple[list[EncodedRow], list[GoneRow]]:
        """Rows whose turn it is: they may have changed without an event."""
        now = self._clock.monotonic()
        if now - self._looked_at < LOOK:
            return [], []
        self._looked_at = now
        due = [id for id, _ in zip(self._open, range(LOOKED_AT), strict=False)]
        for id in due:
            self._open.move_to_end(id)
        threads = {id: self._open[id].task.thread for id in due if id not in changed}
        rows, gone = await encoded_rows(self._tasks, threads)
        for one in gone:
            self._open.pop(one.id, None)
        return rows, gone

    def _is_news(self, row: EncodedRow) -> bool:
        """Whether it is not as it was sent. Rows that can change without an event are remembered."""
        before = self._open.get(row.task.id)
        if row.is_open:
            self._open[row.task.id] = row
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        elif before is not None:
            del self._open[row.task.id]
        return before is None or before.text != row.text

    async def _new_overview(self) -> bytes:
        """At most once a second, and only if it is not as it was."""
        now = self._clock.monotonic()
        since = now - self._overview_at
        if since < (LOOK if self._is_stale else IDLE_OVERVIEW):
            return b""
        self._is_stale, self._overview_at = False, now
        before, self._overview = self._overview, encode(wire_overview(await self._tasks.overview(None)))
        return b"" if self._overview == before else self._overview

    async def snapshot(self, query: Query) -> tuple[int, list[EncodedRow]]:
        """The newest and the active, and the event up to which they are true."""
        async with self.building:  # many may come at once
            seq = self.seq
            found = await bounded_tasks(self._tasks, query)
            rows = [_encoded(*pair) for pair in zip(found, await rows_of(self._tasks, found), strict=True)]
        for row in rows:
            if row.is_open and row.task.id not in self._open and len(self._open) < MOST_OPEN:
                self._open[row.task.id] = row
        return seq, rows


async def encoded_rows(tasks: Tasks, wanted: Mapping[str, str]) -> tuple[list[EncodedRow], list[GoneRow]]:
    """The tasks as they are now, by id; `wanted` says of each whose it is, as a deleted one cannot."""
    found: list[Task] = []
    gone: list[GoneRow] = []
    for id, thread in wanted.items():
        task = None
        with contextlib.suppress(NotFound, Ambiguous):
            task = await tasks.get(id, None)
        if task is None or task.hidden or task.id != id:  # of an id that is gone, another's may be found
            gone.append(GoneRow(id, thread))
        else:
            found.append(task)
    rows = await rows_of(tasks, found)
    return [_encoded(task, row) for task, row in zip(found, rows, strict=True)], gone


def _encoded(task: Task, row: Row) -> EncodedRow:
    is_open = not task.ended or (row.delivery is not None and row.delivery.state in _OPEN)
    return EncodedRow(task, encode(row), is_open)
