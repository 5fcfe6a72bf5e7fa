"""announce: turns lease a thread's notices, in order, and acknowledge them; idle threads are woken.

Waking is level-triggered: whoever waits is woken while there is something unread and no turn open.
A signal only says "look again", so a missed one costs at most a reconciler's round, never a notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Sequence

from meantime.kernel.change import Change
from meantime.kernel.errors import InvalidInput, LeaseLost, NotFound
from meantime.kernel.ids import crockford
from meantime.kernel.model import Task
from meantime.kernel.notices import Notice, NoticeState
from meantime.kernel.reminder import reminder
from meantime.kernel.timeouts import check
from meantime.ports.clock import Alarm
from meantime.ports.store import Committed, Entry, Settled
from meantime.ports.tasks import OpenTurn

from .batches import Batches
from .entropy import entropy
from .record import Record
from .settings import Settings

MAX_LEASED = 1_000
_UNTOLD = (NoticeState.UNREAD, NoticeState.LEASED)


class Holding:
    """An open turn: its thread is busy while it lasts."""

    __slots__ = ("alarm", "id", "lapsed", "lease", "thread")

    def __init__(self, id: str, thread: str, lease: float | None) -> None:
        self.id = id
        self.thread = thread
        self.lease = lease
        self.alarm: Alarm | None = None
        self.lapsed = False


class Announcing:
    def __init__(self, record: Record, batches: Batches, settings: Settings) -> None:
        self._record = record
        self._batches = batches
        self._store = record.store
        self._settings = settings
        self._turns: dict[str, Holding] = {}
        self._busy: dict[str, int] = {}  # open turns by thread
        self._unread: dict[str, int] = {}
        self._signals: dict[str, int] = {}  # grows with everything that makes looking worth while
        self._sleepers: dict[str, list[asyncio.Future[None]]] = {}
        self._beside: set[asyncio.Task[object]] = set()

    async def open(self) -> None:
        """After a restart nobody holds a turn: what was leased comes again, with the same id."""
        await self._store.recover(self._settings.parks_after)
        self._unread = dict(await self._store.unread())

    # -- turns

    async def open_turn(self, thread: str, *, lease: float | None, limit: int) -> OpenTurn:
        if not 0 < limit <= MAX_LEASED:
            raise InvalidInput(f"A turn leases from 1 to {MAX_LEASED} notices, not {limit}.")
        holding = Holding(_turn_id(), thread, None if lease is None else check(lease))
        self._turns[holding.id] = holding
        self._busy[thread] = self._busy.get(thread, 0) + 1
        opening = asyncio.get_running_loop().create_task(self._lease(holding, limit))
        try:
            notices = await asyncio.shield(opening)
        except BaseException:
            # Nobody will hold this turn, but its lease may be on its way to the disk.
            self._run_beside(self._undo(opening, holding))
            raise
        self._arm(holding)
        return OpenTurn(holding.id, notices)

    async def _undo(self, opening: asyncio.Task[Sequence[Notice]], holding: Holding) -> None:
        await asyncio.wait([opening])
        await self.close_turn(holding.id, failed=False)

    async def boundary(self, turn: str, *, limit: int) -> Sequence[Notice]:
        return await self._lease(self._holding(turn), limit)

    async def _lease(self, holding: Holding, limit: int) -> Sequence[Notice]:
        thread = holding.thread
        if not self._unread.get(thread) and not await self._store.notices(thread, [NoticeState.PARKED], 1):
            return ()
        parked = not self._unread.get(thread)
        notices = await self._store.lease(thread, holding.id, limit, self._record.clock.now())
        self._count(thread, -len(notices))
        if parked:  # unclaimed notices came back, perhaps more than were leased
            self._unread = dict(await self._store.unread())
        return await self._batches.label(notices)

    async def ack(self, turn: str, notices: Sequence[str], entries: Sequence[Entry]) -> Settled:
        holding = self._holding(turn)
        now = self._record.clock.now()
        settled = await self._store.settle(holding.thread, turn, notices, entries, now)
        if settled.gone:
            raise LeaseLost(settled.gone)
        return settled

    async def read(self, turn: str, task: Task) -> None:
        """The turn's agent has seen this ending: its ack settles the notice."""
        holding = self._holding(turn)
        now = self._record.clock.now()
        if holding.thread == task.thread and await self._store.read(turn, task.id, task.run.number, now):
            self._count(task.thread, -1)

    async def renew(self, turn: str) -> None:
        self._arm(self._holding(turn))

    async def close_turn(self, turn: str, *, failed: bool) -> None:
        """What was not acknowledged is unread again."""
        holding = self._turns.get(turn)
        if holding is None:
            return
        if holding.alarm is not None:
            holding.alarm.cancel()
        try:
            await self._give_back(holding, failed=failed)
        finally:
            if self._turns.pop(turn, None) is not None and not holding.lapsed:
                self._leave(holding.thread)
            self.signal(holding.thread)

    async def _give_back(self, holding: Holding, *, failed: bool) -> None:
        back = await self._store.release(
            holding.thread, holding.id, failed=failed, parks_after=self._settings.parks_after
        )
        self._count(holding.thread, len(back))

    def _arm(self, holding: Holding) -> None:
        if holding.alarm is not None:
            holding.alarm.cancel()
        if holding.lease is not None and not holding.lapsed:
            holding.alarm = self._record.clock.call_later(
                holding.lease, lambda: self._run_beside(self._lapse(holding))
            )

    async def _lapse(self, holding: Holding) -> None:
        """Its holder was silent for the whole lease: the thread is idle, the notices come again."""
        if holding.lapsed or holding.id not in self._turns:
            return
        holding.lapsed = True
        self._leave(holding.thread)
        await self._give_back(holding, failed=True)
        self.signal(holding.thread)

    def _leave(self, thread: str) -> None:
        left = self._busy[thread] - 1
        if left:
            self._busy[thread] = left
        else:
            del self._busy[thread]

    def _holding(self, turn: str) -> Holding:
        holding = self._turns.get(turn)
        if holding is None:
            raise NotFound(f"No turn {turn!r} is open.", hint="Open one with thread.turn().")
        return holding

    # -- waking

    def heard(self, change: Change, committed: Committed) -> None:
        if change.ends and change.task.notify:
            self._count(change.task.thread, 1)
            self.signal(change.task.thread)

    def signal(self, thread: str) -> None:
        self._signals[thread] = self._signals.get(thread, 0) + 1
        for sleeper in self._sleepers.pop(thread, ()):
            if not sleeper.done():
                sleeper.set_result(None)

    def is_due(self, thread: str) -> bool:
        return thread not in self._busy and self._unread.get(thread, 0) > 0

    async def wait_wake(self, thread: str, seen: int) -> int:
        while True:
            signals = self._signals.get(thread, 0)
            if signals != seen and self.is_due(thread):
                return signals
            sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            sleepers = self._sleepers.setdefault(thread, [])
            sleepers.append(sleeper)
            try:
                await sleeper
            finally:
                if not sleeper.done() or sleeper.cancelled():
                    self._sleepers.get(thread, []).remove(sleeper)

    def reconcile(self) -> None:
        """Looks again at every thread that is idle with something unread."""
        for thread in [thread for thread in self._unread if self.is_due(thread)]:
            self.signal(thread)

    async def unpark(self, thread: str) -> int:
        back = await self._store.unpark(thread)
        self._count(thread, back)
        self.signal(thread)
        return back

    async def park_unclaimed(self) -> None:
        before = self._record.clock.now() - self._settings.retention.unclaimed_seconds
        if await self._store.park_unclaimed(before):
            self._unread = dict(await self._store.unread())

    # -- looking

    async def reminder(self, thread: str) -> str:
        # Only what is open is looked at, never history: the cost is that of the text itself.
        untold = [notice.task for notice in await self._store.notices(thread, _UNTOLD, MAX_LEASED)]
        ended = {(task.id, task.run.number) for task in untold}  # the store may know of an ending first
        of_thread = self._record.of_thread.get(thread, {}).values()
        active = [task for task in of_thread if (task.id, task.run.number) not in ended]
        parked = len(await self._store.notices(thread, [NoticeState.PARKED], MAX_LEASED))
        return reminder(active, untold, parked, self._record.clock.now())

    async def notices(self, thread: str | None, states: Iterable[str]) -> Sequence[Notice]:
        try:
            wanted = [NoticeState(state) for state in states]
        except ValueError as problem:
            raise InvalidInput(f"{problem}.", hint=f"States are {', '.join(NoticeState)}.") from None
        return await self._batches.label(await self._store.notices(thread, wanted, MAX_LEASED))

    def unread(self, thread: str) -> int:
        return self._unread.get(thread, 0)

    def _count(self, thread: str, change: int) -> None:
        left = self._unread.get(thread, 0) + change
        if left > 0:
            self._unread[thread] = left
        else:
            self._unread.pop(thread, None)

    def _run_beside(self, coroutine: Coroutine[None, None, object]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def close(self) -> None:
        for turn in list(self._turns):
            await self.close_turn(turn, failed=False)
        await asyncio.gather(*self._beside, return_exceptions=True)


def _turn_id() -> str:
    return "turn_" + crockford(entropy(16))
