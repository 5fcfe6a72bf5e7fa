"""run notices: what a run tells its thread before it ends. Events that come too fast are told together, once
the rate allows it; a restart knows of those that wait, since they are in the task.
"""

from __future__ import annotations

from collections.abc import Iterable

from meantime.kernel.change import Change
from meantime.kernel.errors import Degraded, LedgerError, MeantimeError, Refused
from meantime.kernel.event_notices import Events, NoticeRate, checked, one, wait_for
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Json, Task
from meantime.kernel.watches import rate_for
from meantime.ports.clock import Alarm
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.store import Committed

from .record import DRAIN, Record, not_started

RETRY = 5.0  # seconds, while the disk does not take it
SENT, WAITING = "sent", "waiting"


class RunNotices:
    def __init__(self, record: Record, rate: NoticeRate) -> None:
        self._record = record
        self._rate = rate
        self._alarms: dict[str, Alarm] = {}  # of tasks with events that wait
        self._listens = False
        self._telling = BackgroundTasks()

    async def notify(self, task: Task, text: str, number: int = 0) -> str:
        """One more event. The answer: "sent" in a notice, or "waiting" for the next one. `number` as in
        Record.notify."""
        text = checked(text)
        if task.ended:
            raise _ended(task)
        if task.status is Status.QUEUED:
            raise not_started(task)
        told = await self._record.notify(task.id, one(text, number), rate_for(task, self._rate))
        if told.ended:
            raise _ended(told)
        return WAITING if self._follow(told) else SENT

    async def found(self, task: Task, events: Events, cursor: Json) -> bool:
        """Events that a watch found, with how far it has looked, in one transaction. False: it has ended."""
        told = await self._record.notify(task.id, events, rate_for(task, self._rate), cursor)
        self._follow(told)
        return not told.ended

    def recover(self, active: Iterable[Task]) -> None:
        for task in active:
            self._follow(task)

    def _follow(self, task: Task) -> bool:
        """Whether something waits; it is told as soon as the rate allows it."""
        tally = task.run.events
        if tally is None or not tally.waiting:
            return False
        if task.id not in self._alarms:
            rate = rate_for(task, self._rate)
            self._arm(task.id, wait_for(tally, rate, self._record.clock.now()))
        return True

    def _on_commit(self, change: Change, committed: Committed) -> None:
        """An ending tells what waits, so nobody has to wake for it."""
        if change.task.ended and (alarm := self._alarms.pop(change.task.id, None)) is not None:
            alarm.cancel()

    def _arm(self, id: str, seconds: float) -> None:
        if not self._listens:  # where nothing waits, nobody pays for it
            self._listens = True
            self._record.change_listeners.append(self._on_commit)
        self._alarms[id] = self._record.clock.call_later(seconds, lambda: self._telling.start(self._tell(id)))

    async def _tell(self, id: str) -> None:
        """An ending has told them already. A full disk is tried again."""
        self._alarms.pop(id, None)  # we may be closing
        try:
            await self._record.notify_waiting(id)
        except (LedgerError, Degraded):
            self._arm(id, RETRY)
        except MeantimeError:
            return  # it was deleted, or we are closing: the next owner goes on
        task = self._record.live.get(id)
        if task is not None and id not in self._alarms:
            self._follow(task)

    async def close(self) -> None:
        for alarm in self._alarms.values():
            alarm.cancel()
        self._alarms.clear()
        await self._telling.wait(DRAIN)


def _ended(task: Task) -> Refused:
    return Refused(
        f"Task {task.id} has ended.", code="ended", hint="Its ending is what its conversation is told last."
    )
