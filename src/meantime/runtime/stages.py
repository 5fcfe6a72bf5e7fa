"""The stages of the runtime, joined. Each is made with its neighbours, and told of the commits it needs."""

from __future__ import annotations

import asyncio
from typing import cast

from meantime.conversation.push import Pushing
from meantime.ports.clock import Clock
from meantime.ports.engine import Engine
from meantime.ports.event_loop import check_loop
from meantime.ports.executors import NOBODY, LinkedProcesses
from meantime.ports.runner import Assignment
from meantime.ports.store import Store
from meantime.ports.tasks import Tasks
from meantime.ports.worker_pools import HERE, Placing

from .admit import Admission
from .adopt import Adoption
from .announce import Announcing
from .batches import Batches
from .call import Calls
from .clear import Clearing
from .delayed_starts import DelayedStarts
from .details import Details
from .follow_ups import FollowUps
from .observe import Observing
from .open_questions import OpenQuestions
from .queries import Looking
from .record import Record
from .reminding import Reminding
from .rows import Rows
from .run import Runs
from .run_notices import RunNotices
from .session_cleanup import SessionCleanup
from .settings import ON_CLOSE, Settings
from .stop import Stopping
from .submit import Submission
from .tally import Tally
from .upkeep import Upkeep
from .usual_durations import UsualDurations
from .wake import Waking
from .watched_work import WatchedWork
from .work_io import WorkIO


class Stages:
    """Every stage with the neighbours that it needs. Opens and closes them in their order."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        clock: Clock,
        settings: Settings,
        linked: LinkedProcesses = NOBODY,
        placing: Placing = HERE,
    ) -> None:
        self.store = store
        self.engine = engine
        self.settings = settings
        self.record = Record(store, clock)
        self.asking = OpenQuestions(self.record)
        self.run_notices = RunNotices(self.record, settings.notices)
        self.runs = Runs(self.record, engine, settings, self.asking, self.run_notices, self._requeue)
        self.placing = placing
        self.admission = Admission(
            self.record, settings.limits, self.runs.launch, linked.limits_changed, placing
        )
        placing.join(self.admission, self.record)
        self.batches = Batches(self.record)
        self.delayed = DelayedStarts(self.record, self.admission, engine)
        self.submission = Submission(
            self.record, self.admission, self.batches, engine, settings, self.delayed, placing
        )
        self.looking = Looking(self.record, self.runs, engine, settings)
        self.following = FollowUps(self.record, self.submission, engine)
        self.work_io = WorkIO(self.looking, self.following, engine)
        self.watched = WatchedWork(self.record, self.looking, self.run_notices, engine)
        self.stopping = Stopping(self.record, self.runs, self.admission, self.looking, engine, settings)
        self.sessions = SessionCleanup(self.record, engine)
        self.clearing = Clearing(self.record, self.looking, engine, self.sessions)
        self.waking = Waking(store, clock, settings.wakes, linked.inbox_filled)
        self.reminding = Reminding(self.record, lambda: self.admission.slots.limits)
        self.announcing = Announcing(self.record, self.waking, settings, self.reminding.pending_of)
        self.observing = Observing(self.record)
        self.tally = Tally(self.record, self.admission, self.batches, self.waking)
        self.usual = UsualDurations(self.record)
        self.rows = Rows(self.record, self.admission, engine, self.usual, placing)
        self.details_of = Details(
            self.record, engine, self.admission, self.announcing, self.batches, self.usual
        )
        self.calling = Calls(
            self.record, self.submission, self.batches, self.admission, self.runs, engine, settings
        )
        self.adoption = Adoption(
            self.record, self.submission, self.batches, self.admission, self.runs, engine
        )
        self.upkeep = Upkeep(
            self.record,
            self.admission,
            self.batches,
            self.announcing,
            self.waking,
            engine,
            settings,
            self.sessions,
            placing is not HERE,
            self.runs.stop,
            self.following.recover,
            self.delayed,
            (self.reminding.look_at_clocks, self.delayed.look_at_clocks),
        )
        self.pushing = Pushing(cast("Tasks", self), self.record.sleep)  # the runtime has the verbs
        every = (self.batches, self.waking, self.observing)
        changes = (self.admission, self.asking, self.looking, self.following, self.usual)
        self.record.listeners += [stage.on_commit for stage in every]
        self.record.change_listeners += [stage.on_commit for stage in changes]
        self.record.schedule_listeners.append(lambda change: self.waking.count_notices(change.notices))
        self._open = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def _requeue(self, assignment: Assignment) -> None:
        self.admission.give_up(assignment.task)
        self.admission.enqueue(assignment)

    async def open(self) -> None:
        await self.store.open()
        try:
            await self.engine.open()
            await self.announcing.open()
            await self.upkeep.recover()
            await self.following.recover()
            self.run_notices.recover(self.record.live.values())
            await self.reminding.open()
        except BaseException:
            await self.engine.close()
            await self.store.close()
            raise
        self.upkeep.start()
        self.usual.open()
        self._loop = asyncio.get_running_loop()
        self._open = True

    async def close(self, on_close: str | None = None) -> None:
        """Stops what runs in this process and records it. Work that outlives us goes on, if it may, and what
        is queued stays queued: both are for the next owner."""
        keeps = ON_CLOSE(self.settings.on_close if on_close is None else on_close, "on_close") == "keep"
        if not self._open:
            return
        check_loop(self._loop)
        self._open = False
        self.admission.closed = True
        try:
            await self.pushing.close()
            await self.calling.close()
            await self.following.close()
            await self.stopping.everything(keeps=keeps)
            self.looking.close()
            await self.usual.close()
            self.waking.close()
            self.observing.close()
            await self.runs.close()
            await self.run_notices.close()
            await self.reminding.close()
            await self.delayed.close()
            await self.announcing.close()
            await self.upkeep.close()
            await self.engine.close()
        finally:
            await self.store.close()
