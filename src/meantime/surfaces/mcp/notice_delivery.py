"""How a conversation is told over MCP: its notices ride on the results of its tool calls.

A notice is leased when a result takes it along, and acknowledged when we know that the client has the
result: when it calls again, or when it has taken everything from the pipe. Until then it is ours to tell
again, with the same id. Class C of PROMISES P5: at least once; what is told twice says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from meantime.kernel.errors import MeantimeError
from meantime.kernel.notices import Notice, Renderer
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.tasks import OpenTurn, Tasks

LOG = logging.getLogger("meantime.mcp")
MOST, MOST_CHARACTERS = 20, 40_000  # in one result: hosts cut off, or refuse, what is much longer
SETTLE = 5.0  # seconds in which a client that has the answer can put it into its conversation
HOLD = 60.0  # seconds until an answer that was not heard of is ours to tell again
REMEMBERED = 1_000
AGAIN = "You may have been told this before: it has the same id.\n"


class Ride:
    """Notices on their way, with one result."""

    def __init__(self, turn: str, told: list[str], texts: list[str], more: int) -> None:
        self.turn = turn
        self.told = told  # settled with it: what it shows, and what its agent read in the result itself
        self.texts = texts
        self.more = more
        self.sent = False
        self.minding: asyncio.Task[None] | None = None


class NoticeDelivery:
    """`taken` says whether the client has read all that was written to it; None is not known."""

    def __init__(
        self,
        tasks: Tasks,
        thread: str,
        taken: Callable[[], bool | None] = lambda: None,
        dialect: Renderer | None = None,
    ) -> None:
        self._tasks = tasks
        self._dialect = dialect
        self._thread = thread
        self._taken = taken
        self.tells = True  # otherwise only what an answer itself reads is settled here
        self._calls = 0  # that are under way
        self._rides: list[Ride] = []
        self._shown: dict[str, None] = {}  # in answers that went out, and that nobody has acknowledged
        self._had: dict[str, None] = {}  # of those, what the client has for certain
        self._followed: dict[str, float] = {}  # tasks that the client asks about itself, and when it last did
        self._beside = BackgroundTasks()

    def follows(self, task: str) -> None:
        """The client is told of this task by asking: it need not be told here, too."""
        self._followed.pop(task, None)
        _add(self._followed, {task: asyncio.get_running_loop().time()})

    async def begin(self) -> None:
        """A call comes in, and what its client has read by now is settled."""
        if self.enter():
            await self.settle_read_results()

    def enter(self) -> bool:
        """A call comes in. True: there may be something to settle."""
        self._calls += 1
        return self._calls == 1 and bool(self._rides or self._shown)

    async def settle_read_results(self) -> None:
        """Where no call was under way, its client has read our answers: a model calls several tools at once,
        and none of those calls has seen the answer to another."""
        if self._taken() is not False:
            _add(self._had, self._shown)
            self._shown.clear()
        for ride in [ride for ride in self._rides if ride.sent and self._taken() is not False]:
            await self._settle(ride)

    def end(self) -> None:
        self._calls -= 1

    async def ride(self, reads: Sequence[str]) -> Ride | None:
        """The notices to tell now; None for nothing. A caller that is cancelled loses nothing."""
        if not reads and self._tasks.has_empty_inbox(self._thread):
            return None
        boarding = self.aside(self._board(frozenset(reads)))
        try:
            return await asyncio.shield(boarding)
        except asyncio.CancelledError:
            boarding.add_done_callback(self._nobody_waits)
            raise
        except MeantimeError as problem:
            LOG.warning("Nothing could be told with this result: %s", problem)  # it comes with a later one
            return None

    async def _board(self, reads: frozenset[str]) -> Ride | None:
        opened = await self._tasks.open_turn(self._thread, lease=None, limit=MOST)
        if not opened.notices:
            self.aside(self._close(opened.id))
            return None
        fresh = await self._known(opened, reads)
        if not fresh and not any(notice.id in reads for notice in opened.notices):
            self.aside(self._close(opened.id))
            return None
        texts = [self._text(notice) for notice in fresh]
        count = _fitting(texts)
        told = [notice.id for notice in opened.notices if notice.id in reads]
        told += [notice.id for notice in fresh[:count]]
        ride = Ride(opened.id, told, texts[:count], len(fresh) - count)
        self._rides.append(ride)
        ride.minding = self.aside(self._mind(ride))
        return ride

    async def _known(self, opened: OpenTurn, reads: frozenset[str]) -> list[Notice]:
        """Notices that the client has already are acknowledged now; the rest is to be shown."""
        had = [notice.id for notice in opened.notices if notice.id in self._had]
        if had:
            await self._tasks.ack(opened.id, had, ())
            for id in had:
                del self._had[id]
        fresh = [notice for notice in opened.notices if notice.id not in reads and notice.id not in had]
        return [notice for notice in fresh if self.tells and not self._is_followed(notice.task_id)]

    def _text(self, notice: Notice) -> str:
        return (AGAIN if notice.delivery > 1 else "") + notice.message(self._dialect).text

    def _is_followed(self, task: str) -> bool:
        """One that has not asked for long may have forgotten it."""
        last = self._followed.get(task)
        return last is not None and asyncio.get_running_loop().time() - last < HOLD

    def sent(self, ride: Ride) -> None:
        """The answer has been sent."""
        ride.sent = True

    def give_back(self, ride: Ride) -> None:
        """The answer never got out: the next result takes them along."""
        if ride in self._rides:
            self._rides.remove(ride)
            self.aside(self._let_go(ride))

    async def settle_read(self, id: str, notice: str) -> None:
        """The client follows this task by itself, and was given its ending; it can ask again at any time."""
        with suppress(MeantimeError):
            opened = await self._tasks.open_turn(self._thread, lease=None, limit=1)
            try:
                await self._tasks.output(id, self._thread, turn=opened.id)
                await self._tasks.ack(opened.id, (), (), [notice])
            finally:
                await self._close(opened.id)

    async def close(self) -> None:
        """The client is gone. Notices that it may not have read are told again to the next one."""
        rides, self._rides = self._rides, []
        for ride in rides:
            self.aside(self._let_go(ride))
        await self._beside.wait(
            SETTLE
        )  # not for ever: the owner may be gone; then nothing is leased any more

    async def _mind(self, ride: Ride) -> None:
        """Nobody holds a turn for ever: the thread would count as busy, and nobody would be woken."""
        until = asyncio.get_running_loop().time() + HOLD
        while asyncio.get_running_loop().time() < until:
            await asyncio.sleep(SETTLE)
            if ride.sent and self._taken():
                ride.minding = None
                await self._settle(ride)
                return
        if ride in self._rides:
            self._rides.remove(ride)
            if ride.sent:
                _add(self._shown, ride.told)
            ride.minding = None
            await self._let_go(ride)

    async def _settle(self, ride: Ride) -> None:
        if ride not in self._rides:
            return
        self._rides.remove(ride)
        _stop(ride)
        try:
            await self._tasks.ack(ride.turn, ride.told, ())
        except MeantimeError:  # the owner was restarted: they come again, and are known here
            _add(self._had, ride.told)
        await self._close(ride.turn)

    async def _let_go(self, ride: Ride) -> None:
        _stop(ride)
        await self._close(ride.turn)

    async def _close(self, turn: str) -> None:
        with suppress(MeantimeError):
            await self._tasks.close_turn(turn, failed=False)

    def _nobody_waits(self, boarding: asyncio.Task[Ride | None]) -> None:
        ride = None if boarding.cancelled() or boarding.exception() else boarding.result()
        if ride is not None:
            self.give_back(ride)

    def aside(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Done before this is closed, whether or not somebody waits for it."""
        return self._beside.start(work)


def _fitting(texts: list[str]) -> int:
    """How many of them one result can carry; always the first."""
    count, size = 0, 0
    for text in texts:
        size += len(text)
        if count and size > MOST_CHARACTERS:
            break
        count += 1
    return count


def _stop(ride: Ride) -> None:
    if ride.minding is not None:
        ride.minding.cancel()
        ride.minding = None


def _add(known: dict[str, Any], more: Any) -> None:
    known.update(more if isinstance(more, dict) else dict.fromkeys(more))  # pyright: ignore[reportUnknownArgumentType]
    while len(known) > REMEMBERED:  # told twice, at worst
        del known[next(iter(known))]
