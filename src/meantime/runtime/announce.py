"""announce: a turn leases its thread's notices, in order, and acknowledges them when they are told.

Writes to the store are finished here even if their caller is cancelled half-way: a lease that nobody holds,
or a notice given back that nobody counts, would be stranded.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from meantime.kernel.argument_checks import check_all, check_scope, shown
from meantime.kernel.constraints import check_count, check_flag, check_members
from meantime.kernel.errors import Degraded, InvalidInput, LeaseLost, LedgerError, NotFound
from meantime.kernel.ids import check_id, crockford
from meantime.kernel.inbox_page import InboxEntry, InboxPage
from meantime.kernel.model import Task
from meantime.kernel.notice_sources import SourceKind, notice_id
from meantime.kernel.notices import Notice, NoticeState
from meantime.kernel.reminder import reminder
from meantime.kernel.timeouts import check
from meantime.ports.clock import Alarm
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.store import Entry, Settled, check_entry
from meantime.ports.task_details import Attendance
from meantime.ports.tasks import OpenTurn

from .entropy import entropy
from .record import DRAIN, Record
from .settings import Settings
from .wake import Waking

T = TypeVar("T")
logger = logging.getLogger("meantime")
MAX_WARNED = 100
MAX_LEASED = 1_000
MAX_INBOX = 200  # notices of a page for people
MAX_COUNTED = 10_000  # told ones that are counted for them
MAX_LOOKED = 100  # notices that a reminder reads; the rest are counted
_UNTOLD = (NoticeState.UNREAD, NoticeState.LEASED)
_PARKED = (NoticeState.PARKED,)
_OPEN = (*_UNTOLD, *_PARKED)


class Holding:
    """An open turn: its thread is busy while it lasts."""

    __slots__ = ("alarm", "held", "id", "lease", "opened_at", "thread", "told", "under_way")

    def __init__(self, thread: str, lease: float | None) -> None:
        self.id = "turn_" + crockford(entropy(16))
        self.thread = thread
        self.lease = lease
        self.alarm: Alarm | None = None
        self.held: dict[str, float] = {}  # leased to it and not acknowledged, and since when
        self.opened_at = 0.0
        self.told = False  # it has acknowledged something
        self.under_way: set[asyncio.Task[Any]] = set()  # leases and reads that are being written

    async def settled(self) -> None:
        """A call under way may still lease something to this turn: it ends first."""
        while self.under_way:
            await asyncio.wait(self.under_way)


class Announcing:
    def __init__(
        self,
        record: Record,
        waking: Waking,
        settings: Settings,
        coming: Callable[[str], int],
    ) -> None:
        """`coming` says how many reminders of a thread are not due yet."""
        self._coming = coming
        self._record = record
        self._store = record.store
        self._waking = waking
        self._settings = settings
        self._turns: dict[str, Holding] = {}
        self._owed: dict[str, tuple[Holding, bool]] = {}  # turns whose notices could not be given back yet
        self._beside = BackgroundTasks()
        self._warned: set[str] = set()

    async def open(self) -> None:
        """After a restart nobody holds a turn: what was leased comes again, with the same id."""
        await self._store.recover(self._settings.parks_after)
        await self._waking.refresh()

    # -- turns

    async def open_turn(self, thread: str, *, lease: float | None, limit: int) -> OpenTurn:
        _check_limit(limit)
        holding = Holding(thread, None if lease is None else check(lease))
        holding.opened_at = self._record.clock.now()
        self._turns[holding.id] = holding
        self._waking.enter(thread)  # before the look: notices that come meanwhile meet a busy thread
        try:
            notices = await self._leased(holding, limit)
        except BaseException:
            self._begin(self._close(holding, failed=False))  # nobody will hold this turn
            raise
        self._arm(holding)
        return OpenTurn(holding.id, notices)

    async def boundary(self, turn: str, *, limit: int, thread: str | None = None) -> Sequence[Notice]:
        """Notices that a cancelled caller did not see are unacknowledged, and come again after this turn."""
        _check_limit(limit)
        return await self._leased(self._holding(turn, thread), limit)

    async def _leased(self, holding: Holding, limit: int) -> Sequence[Notice]:
        """Before most requests to a model there is nothing to tell: then a look is enough, and needs no task
        of its own. A turn that was closed during the look takes nothing."""
        thread = holding.thread
        is_empty = not self._waking.unread(thread) and not await self._store.notices(thread, _PARKED, 1)
        if is_empty or holding.id not in self._turns:
            return ()
        return await self._finish(self._lease(holding, limit), holding)

    async def _lease(self, holding: Holding, limit: int) -> Sequence[Notice]:
        thread = holding.thread
        known = self._waking.unread(thread)
        now = self._record.clock.now()
        notices = await self._store.lease(thread, holding.id, limit, now)
        holding.held.update((notice.id, now) for notice in notices)
        self._waking.count(thread, -len(notices))
        # Unclaimed ones came back with this lease, perhaps more than it took: where our count says that none
        # is left, the store is asked.
        if len(notices) >= known and await self._store.notices(thread, [NoticeState.UNREAD], 1):
            await self._waking.refresh()
        return notices

    async def ack(
        self,
        turn: str,
        notices: Sequence[str],
        entries: Sequence[Entry],
        reads: Sequence[str],
        thread: str | None = None,
    ) -> Settled:
        """Exactly these: what the turn showed, and what its agent read."""
        turn, thread = check_id(turn, "turn"), check_scope(thread)
        notices, reads = _ids(notices, "notices"), _ids(reads, "reads")
        entries = [check_entry(entry) for entry in check_all(entries, Entry, "entries")]
        if turn not in self._turns and entries:
            raise LeaseLost(notices)  # nobody can say whether these entries were written
        if turn not in self._turns and (notices or reads):
            return await self._settled_before(turn, notices, reads, thread)
        holding = self._holding(turn, thread)
        if not (notices or entries or reads):
            return Settled((), ())
        return await self._finish(self._settle(holding, notices, entries, reads), holding)

    async def _settled_before(
        self, turn: str, notices: Sequence[str], reads: Sequence[str], thread: str | None
    ) -> Settled:
        """The turn is closed, has run out, or was a former owner's. Notices that it told before are still
        told: the answer to that ack may have been lost. Everything else is back in the inbox.
        """
        told = tuple(await self._store.told_by(turn, (*notices, *reads), thread))
        gone = tuple(notice for notice in notices if notice not in told)
        if gone:
            raise LeaseLost(gone)
        return Settled(told, ())

    async def _settle(
        self, holding: Holding, notices: Sequence[str], entries: Sequence[Entry], reads: Sequence[str]
    ) -> Settled:
        wanted = [*notices, *(read for read in reads if read in holding.held)]
        if not wanted:
            if entries:
                await self._store.append(holding.thread, entries)
            return await self._with_earlier(Settled((), ()), holding, reads)
        now = self._record.clock.now()
        settled = await self._store.settle(holding.thread, holding.id, wanted, entries, now)
        for told in settled.told:
            holding.held.pop(told, None)
        holding.told = holding.told or bool(settled.told)
        if settled.gone:
            raise LeaseLost(settled.gone)
        return await self._with_earlier(settled, holding, reads)

    async def _with_earlier(self, settled: Settled, holding: Holding, reads: Sequence[str]) -> Settled:
        """An ack that is sent again holds none of its reads any more, and is answered as it was."""
        rest = [read for read in reads if read not in settled.told]
        if not rest:
            return settled
        earlier = await self._store.told_by(holding.id, rest, holding.thread)
        return Settled((*settled.told, *earlier), ())

    async def read(self, turn: str, task: Task) -> None:
        """The turn's agent sees this ending: its ack may settle the notice."""
        holding = self._holding(turn)
        if holding.thread == task.thread:
            await self._finish(self._read(holding, task), holding)

    async def _read(self, holding: Holding, task: Task) -> None:
        now = self._record.clock.now()
        if await self._store.read(holding.id, task.id, task.run.number, now):
            holding.held[notice_id(task.id, task.run.number)] = now
            self._waking.count(task.thread, -1)

    async def renew(self, turn: str, thread: str | None = None) -> None:
        self._arm(self._holding(turn, thread))

    async def close_turn(self, turn: str, *, failed: bool, thread: str | None = None) -> None:
        """Unacknowledged notices are unread again. One that is not open is closed already."""
        check_flag(failed, "failed")
        turn, thread = check_id(turn, "turn"), check_scope(thread)
        if turn in self._turns:
            holding = self._holding(turn, thread)
            if holding.held or holding.under_way:
                await self._finish(self._close(holding, failed=failed))
            else:  # nothing is written, so there is nothing to finish if the caller is cancelled
                await self._close(holding, failed=failed)

    async def _close(self, holding: Holding, *, failed: bool) -> None:
        if self._turns.pop(holding.id, None) is None:
            return
        if holding.alarm is not None:
            holding.alarm.cancel()
        await holding.settled()
        self._warn(holding, failed)
        await self._give_back(holding, failed=failed)
        self._waking.leave(holding.thread, told=holding.told)

    def _warn(self, holding: Holding, failed: bool) -> None:
        """Forgetting the ack is the first mistake everybody makes: a warning is logged once per thread."""
        forgotten = holding.held and not holding.told and not failed
        if forgotten and holding.thread not in self._warned and len(self._warned) < MAX_WARNED:
            self._warned.add(holding.thread)
            text = "A turn of %r was left without ack(): its %d notices come again."
            logger.warning(text, holding.thread, len(holding.held))

    async def _give_back(self, holding: Holding, *, failed: bool) -> None:
        if not holding.held:
            return
        parks = self._settings.parks_after
        try:
            back = await self._store.release(holding.thread, holding.id, failed=failed, parks_after=parks)
        except (LedgerError, Degraded):
            self._owed[holding.id] = (holding, failed)  # the disk is in trouble: the reconciler goes on
            return
        holding.held.clear()
        self._waking.count(holding.thread, len(back))
        self._waking.nudge(holding.thread)

    async def settle_debts(self) -> None:
        for id, (holding, failed) in list(self._owed.items()):
            del self._owed[id]
            await self._give_back(holding, failed=failed)

    def _arm(self, holding: Holding) -> None:
        if holding.alarm is not None:
            holding.alarm.cancel()
        if holding.lease is not None:
            holding.alarm = self._record.clock.call_later(
                holding.lease, lambda: self._begin(self._lapse(holding))
            )

    async def _lapse(self, holding: Holding) -> None:
        """Its holder was silent for the whole lease: the thread is idle, the notices come again."""
        if self._turns.pop(holding.id, None) is None:
            return
        await holding.settled()
        await self._give_back(holding, failed=True)
        self._waking.leave(holding.thread, told=True)  # its holder is gone: others may take over at once

    def _holding(self, turn: str, thread: str | None = None) -> Holding:
        """`thread` is the caller's scope: another thread's turn is not found."""
        turn, thread = check_id(turn, "turn"), check_scope(thread)
        holding = self._turns.get(turn)
        if holding is None or thread not in (None, holding.thread):
            raise NotFound(f"No turn {turn!r} is open.", hint="Open one with thread.turn().")
        return holding

    # -- parking

    async def unpark(self, thread: str, notices: Sequence[str] | None) -> int:
        chosen = None if notices is None else _ids(notices, "notices")
        return await self._finish(self._unpark(thread, chosen))

    async def _unpark(self, thread: str, notices: Sequence[str] | None) -> int:
        self._record.notices_of(thread)
        back = await self._store.unpark(thread, notices)
        self._record.notices_of(thread)
        self._waking.count(thread, back)
        self._waking.signal(thread)
        return back

    async def park_unclaimed(self) -> None:
        before = self._record.clock.now() - self._settings.retention.unclaimed_seconds
        if await self._store.park_unclaimed(before, self._waking.attended()):
            await self._waking.refresh()

    # -- looking

    async def reminder(self, thread: str, turn: str | None) -> str:
        # Only what is open is looked at, never history: the cost is that of the text itself.
        is_empty = not await self._store.count_notices(thread, _OPEN)  # so it is before most requests
        looked = () if is_empty else await self._store.notices(thread, _UNTOLD, MAX_LOOKED)
        ended = {(one.task.id, one.task.run.number) for one in looked if one.body is None}
        told = self._turns[turn].held if turn in self._turns else ()
        found = [notice for notice in looked if notice.id not in told]
        untold = [notice.task for notice in found if notice.body is None]
        of_thread = self._record.of_thread.get(thread, {}).values()
        # The store may know of an ending first.
        active = [task for task in of_thread if (task.id, task.run.number) not in ended]
        parked = 0 if is_empty else await self._store.count_notices(thread, _PARKED)
        unlisted = self._untold(thread) - len(told) - len(found) if len(looked) == MAX_LOOKED else 0
        kinds = Counter(notice.kind for notice in found)
        return reminder(
            active,
            untold,
            parked,
            self._record.clock.now(),
            self._waking.rests(thread),
            max(0, unlisted),
            kinds[SourceKind.EVENT],
            kinds[SourceKind.ALARM],
            self._coming(thread),
        )

    def _untold(self, thread: str) -> int:
        held = sum(len(holding.held) for holding in self._turns.values() if holding.thread == thread)
        return self._waking.unread(thread) + held

    async def notices(
        self, thread: str | None, states: Iterable[str], limit: int, offset: int
    ) -> Sequence[Notice]:
        check_count(limit, "limit", 1, MAX_LEASED)
        check_count(offset, "offset", 0, 1 << 62)
        return await self._store.notices(thread, _states(states), limit, offset)

    async def count_notices(self, thread: str | None, states: Iterable[str]) -> int:
        return await self._store.count_notices(thread, _states(states))

    def with_leases(self, entries: Sequence[InboxEntry]) -> list[InboxEntry]:
        """With the time since which open turns hold them: a lease does not outlive its turn, so it is not
        recorded."""
        since = {id: at for holding in self._turns.values() for id, at in holding.held.items()}
        return [
            replace(one, leased_at=since.get(one.id)) if one.state is NoticeState.LEASED else one
            for one in entries
        ]

    def attendance(self, thread: str) -> Attendance:
        waiting = self._waking.waiting(thread)
        turns = [holding for holding in self._turns.values() if holding.thread == thread]
        if not turns:
            return Attendance(waiting=waiting)
        newest = max(turns, key=lambda holding: holding.opened_at)
        return Attendance(newest.id, newest.opened_at, len(newest.held), waiting)

    async def inbox(self, thread: str, before: int | None, limit: int) -> InboxPage:
        check_count(limit, "limit", 1, MAX_INBOX)
        top = 1 << 62 if before is None else check_count(before, "before", 1, 1 << 62)
        found = await self._store.inbox(thread, top, limit)
        counts = dict(await self._store.count_inbox(thread, MAX_COUNTED))
        settled = counts.get(NoticeState.TOLD, 0) + counts.get(NoticeState.MUTED, 0)
        rest = found[-1].number if len(found) == limit and found[-1].number > 1 else None
        return InboxPage(tuple(self.with_leases(found)), rest, counts, settled < MAX_COUNTED)

    # -- work that outlasts its caller

    def _begin(self, coroutine: Coroutine[Any, Any, T], holding: Holding | None = None) -> asyncio.Task[T]:
        task = self._beside.start(coroutine)
        if holding is not None:
            holding.under_way.add(task)
            task.add_done_callback(holding.under_way.discard)
        return task

    async def _finish(self, coroutine: Coroutine[Any, Any, T], holding: Holding | None = None) -> T:
        return await asyncio.shield(self._begin(coroutine, holding))

    async def close(self) -> None:
        await self._beside.wait(DRAIN)  # not for ever: the disk may not answer
        for holding in list(self._turns.values()):
            await self._close(holding, failed=False)


def _ids(given: object, what: str) -> list[str]:
    return [check_id(id, "notice") for id in check_all(given, str, what)]


def _states(given: Iterable[str]) -> list[NoticeState]:
    return check_members(given, "states", NoticeState, "state")


def _check_limit(limit: object) -> None:
    if type(limit) is not int or not 0 < limit <= MAX_LEASED:
        raise InvalidInput(f"A turn leases from 1 to {MAX_LEASED} notices, not {shown(limit)}.")
