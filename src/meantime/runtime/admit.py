"""admit: a slot is taken before the work starts and given back by its ending, never by a timer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, takewhile

from msgspec.structs import replace

from meantime.kernel.change import Change, Disposition, Facts, ending
from meantime.kernel.constraints import check_fields
from meantime.kernel.errors import Closed, LimitReached
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.limits import NO_LIMIT, Lane, Limits, Slots, lane_of
from meantime.kernel.model import Claim, Failed, Task, fence_of
from meantime.kernel.outcomes import Report, is_unheard
from meantime.kernel.payloads import short
from meantime.kernel.pool_slots import need_of
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.runner import Assignment
from meantime.ports.store import Committed
from meantime.ports.worker_pools import HERE, Placing, UnmetNeed

from .record import DRAIN, Record, Then

MOST_UNMET = 20  # needs that people are told of at once
Launch = Callable[[Assignment], None]


class Admission:
    def __init__(
        self,
        record: Record,
        limits: Limits,
        launch: Launch,
        limits_changed: Callable[[Limits], object],
        placing: Placing = HERE,
    ) -> None:
        self._record = record
        self._launch = launch
        self.slots = Slots(limits, placing.slots_for)
        self._limits_changed = limits_changed
        self._queued: dict[str, Assignment] = {}
        self._held: set[str] = set()  # who has a slot
        self._offered: dict[str, Assignment] = {}  # of those, who waits for a worker
        self._since: dict[str, float] = {}  # monotonic: when placed work was queued here
        self._placing = placing
        self._starting = BackgroundTasks()
        self.coming = 0  # on their way to the queue: their commit has not landed
        self.closed = False

    def is_open(self, lane: Lane, *, on_limit: str | None) -> bool:
        """True if work may start now; False if it must queue; raises where the answer is no."""
        policy = on_limit or self.slots.limits.on_limit
        if self.slots.is_open(lane):
            return True
        if policy == "reject":
            raise self.slots.refusal(lane)
        waiting, most = self.slots.waiting + self.coming, self.slots.limits.queued
        if most != NO_LIMIT and waiting >= most:
            raise LimitReached(
                f"{waiting} tasks wait for a slot, which is the most.", running=waiting, limit=waiting
            )
        return False

    def check_depth(self, depth: int) -> None:
        """Work that starts work that starts work …: a runaway is stopped before it is recorded."""
        most = self.slots.limits.depth
        if most != NO_LIMIT and depth > most:
            raise LimitReached(
                f"Work at depth {depth - 1} may not start more; the limit is {most}.",
                running=depth,
                limit=most,
            )

    def reserve(self, assignment: Assignment, launch: Launch | None = None) -> Then:
        """Takes the slot before the commit, so that nobody else can. The commit launches the work,
        or, if it fails, gives the slot back."""
        lane = lane_of(assignment.task)
        self.slots.take(lane)

        def created(task: Task, done: bool) -> None:
            if done:
                self._held.add(task.id)
                (launch or self._launch)(assignment)
            else:
                self.slots.give_back(lane)
                self.admit()

        return created

    def take_up(self, assignment: Assignment) -> None:
        """For work that went on while it had no owner: it has its slot, whatever the limits say."""
        task = assignment.task
        self.slots.take(lane_of(task))
        if task.place:
            self.slots.claim(lane_of(task))
        self._held.add(task.id)
        self._launch(assignment)

    def give_up(self, task: Task) -> None:
        """Its run is over and it is to be queued again."""
        if task.id in self._held:
            self._held.discard(task.id)
            self.slots.give_back(lane_of(task))

    def enqueue(self, assignment: Assignment) -> None:
        """For a queued task whose commit has landed."""
        task = assignment.task
        self._queued[task.id] = assignment
        if task.place:
            self._since[task.id] = self._record.clock.monotonic()
        self.slots.wait(lane_of(task), task.id)
        self.admit()

    def admit(self) -> None:
        if self.closed:
            return
        for id in self.slots.admit():
            assignment = self._queued.pop(id)
            self._held.add(id)
            if assignment.task.place:  # it is still queued, until a worker has claimed it
                self._offered[id] = assignment
                self._placing.offer(assignment.task)
            else:
                self._starting.start(self._start(assignment))

    async def claimed(self, id: str, fence: tuple[int, int], claim: Claim) -> bool:
        """The commit of the claim starts the run. Nobody may begin it before."""
        assignment = self._offered.get(id)
        if self.closed or assignment is None or fence_of(assignment.task.run) != fence:
            return False

        def started(task: Task, done: bool) -> None:
            if done and self._offered.pop(id, None) is not None:
                self._since.pop(id, None)
                self.slots.claim(lane_of(task))
                self._launch(replace(assignment, task=task))

        facts = Facts(run=fence, claim=claim)
        return (await self._record.move(id, Move.START, facts, started)).disposition is Disposition.APPLIED

    async def keep_late(self, id: str, fence: tuple[int, int], report: Report) -> None:
        """A worker's report about a run that was given up: the ending stays as it is."""
        task = await self._record.current(id)
        if report.result is not None and is_unheard(task.outcome):
            late = short(report.result.value)
            await self._record.insist(id, Move.COMPLETE, Facts(run=fence, late=late))

    def take_back(self, id: str) -> None:
        """It was offered, and nobody is left who could claim it: it is next in its queue again."""
        assignment = self._offered.pop(id, None)
        if assignment is not None:
            self._held.discard(id)
            self._queued[id] = assignment
            lane = lane_of(assignment.task)
            self.slots.give_back(lane, claimed=False)
            self.slots.wait(lane, id, first=True)

    def workers_changed(self) -> None:
        self.slots.pools.refresh()
        self.admit()

    def overdue(self, seconds: float, after: float, most: int) -> list[Task]:
        """So many more seconds have passed: the tasks that have waited `after` seconds for a worker, while
        there was none that could perform them. At most so many."""
        pools, now = self.slots.pools, self._record.clock.monotonic()
        unmet = [need for need in pools.pass_time(seconds) if 0 <= after <= pools[need].missing]
        queues = (queue for need in unmet for queue in self.slots.waiting_for(need))
        old = (id for queue in queues for id in takewhile(lambda id: now - self._since[id] >= after, queue))
        found = [self._queued[id].task for id in islice(old, most)]
        pools.forget_unused(self.slots.waiting_for)
        return found

    def missing(self, task: Task) -> str:
        """For people: why no worker can perform a task that waits for one; empty otherwise."""
        is_waiting = task.place and task.status is Status.QUEUED
        return self._placing.missing(need_of(task)) if is_waiting else ""

    def unmet(self) -> tuple[UnmetNeed, ...]:
        """For people: work that waits, and that none of the workers there can perform."""
        found: list[UnmetNeed] = []
        for need in self.slots.pools.unmet():
            waiting = sum(len(queue) for queue in self.slots.waiting_for(need))
            if waiting and len(found) < MOST_UNMET:
                found.append(UnmetNeed(*need, waiting, self._placing.missing(need)))
        return tuple(found)

    async def give_up_waiting(self, id: str, reason: str) -> None:
        """A queued task that no worker can perform has failed."""
        outcome = Failed(reason, "no_worker")
        await self._record.insist(id, ending(outcome), Facts(outcome=outcome))

    async def _start(self, assignment: Assignment) -> None:
        try:
            moved = await self._record.insist(assignment.task.id, Move.START, Facts())
        except Closed:
            return  # still queued, for the next owner
        if moved.disposition is Disposition.APPLIED:
            self._launch(replace(assignment, task=moved.task))

    def on_commit(self, change: Change, committed: Committed) -> None:
        """A task that ended gives its slot, or its place in the queue, to the next."""
        task = change.task
        if task.place:
            self._placing.recorded(task)
        if not change.ends:
            return
        lane = lane_of(task)
        self._since.pop(task.id, None)
        if task.id in self._held:
            self._held.discard(task.id)
            offered = self._offered.pop(task.id, None)
            self.slots.give_back(lane, claimed=offered is None)
        elif self.slots.forget(lane, task.id):
            self._queued.pop(task.id, None)
        self.admit()

    def set_limits(self, limits: Limits) -> None:
        self.slots.limits = check_fields(limits)
        self._limits_changed(limits)
        self.admit()

    async def drain(self) -> None:
        """After `closed`: waits for the starts that were under way."""
        await self._starting.wait(DRAIN)  # not for ever: the disk may be failing

    def position(self, task: Task) -> int | None:
        return self.slots.position(lane_of(task), task.id)
