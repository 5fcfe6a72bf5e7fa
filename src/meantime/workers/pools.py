"""The owner's side of workers: offers what is queued, grants what is claimed, follows what runs elsewhere.

`owner_state.py` decides; this carries out its effects over a carrier, and answers for the runs to the
runtime. Everything that is sent may be lost, so everything is repeated: by the worker, or by `_tick`.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from meantime.kernel.errors import Closed, LedgerError, MeantimeError, NotFound
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import POOL
from meantime.kernel.model import Chunk, Claim, Task, fence_of
from meantime.kernel.outcomes import Report
from meantime.link.frames import Fence, from_wire
from meantime.ports.carrier import CarrierState, OwnerCarrier
from meantime.ports.clock import Alarm, Clock
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.executors import Relay
from meantime.ports.runner import Assignment
from meantime.ports.worker_pools import CurrentTasks, PlacedTasks, WorkerAbout

from . import messages as say
from .effects import Commit, Conclude, Lose, OwnerEffect, Publish, SendGrant, Settle, StopStray, Tell, Unbegun
from .followed_run import FollowedRun
from .message_parts import PartAssembly, cut
from .output_copy import copy_files
from .owner_key import Signer
from .owner_state import GRACE, LEASE, OwnerState
from .worker_requests import WorkerRequests

logger = logging.getLogger("meantime")
TICK = 0.5  # seconds
CLOSING = "The owner of the ledger was closed."


class WorkerPools:
    """ports.worker_pools: Placing and PlacedWork."""

    def __init__(
        self,
        carrier: OwnerCarrier,
        signer: Signer,
        clock: Clock,
        *,
        lease: float = LEASE,
        grace: float = GRACE,
    ) -> None:
        self._carrier = carrier
        self._signer = signer
        self._clock = clock
        self._patience = lease + grace
        self.state = OwnerState(lease, grace)
        self._offered: dict[str, Task] = {}
        self._runs: dict[str, FollowedRun] = {}
        self._unheard: dict[str, tuple[str, str, Fence]] = {}  # tasks whose ending is being recorded
        self._pools: set[str] = set()
        self._parts: dict[str, PartAssembly] = {}
        self._requests = WorkerRequests(self._tell, clock)
        self._beside = BackgroundTasks()
        self._counts: Counter[str] = Counter()
        self._alarm: Alarm | None = None
        self._ticked = clock.monotonic()
        self._ledger: PlacedTasks | None = None
        self._record: CurrentTasks | None = None
        self._refused: set[str] = set()  # messages that were logged
        self._is_looking = False  # at the queues
        self._closed = False

    @property
    def public_key(self) -> str:
        """The key that workers pin."""
        return self._signer.public

    # -- life

    async def open(self) -> None:
        await self._carrier.open(self._receive, self._state_changed)
        self._ticked = self._clock.monotonic()
        self._arm()

    async def close(self) -> None:
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        self._requests.close()
        await self._beside.close()
        await self._carrier.close()

    def _state_changed(self, state: CarrierState) -> None:
        if not state.up and not self._closed:
            logger.warning("The carrier is down: %s", state.reason)

    # -- ports.worker_pools.Placing

    def check(self, place: str) -> str:
        return place if place.startswith(POOL) else ""

    def join(self, placed: PlacedTasks, record: CurrentTasks) -> None:
        self._ledger, self._record = placed, record

    def offer(self, task: Task) -> None:
        self._offered[task.id] = task
        self._do(self.state.offer(task.id, fence_of(task.run), task.place))

    def recorded(self, task: Task) -> None:
        """The ledger moved on: an ending that it has now is acknowledged, an offer of what ended is void."""
        if task.ended and task.id in self._offered:
            offered = self._offered.pop(task.id)
            self.state.withdraw(task.id)
            self._carrier.withdraw(_pool(task.place), say.offer_key(offered))
        worker, nonce, fence = self._unheard.get(task.id, ("", "", (0, 0)))
        if nonce and (task.ended or fence_of(task.run) != fence):
            del self._unheard[task.id]
            self._do(self.state.recorded(task.id, worker, nonce))

    def about(self) -> tuple[WorkerAbout, ...]:
        return self.state.about()

    def counters(self) -> Mapping[str, int]:
        return {
            "workers.carrier_up": int(self._carrier.state.up),
            "workers.unclaimed": len(self.state.offers),
            "workers.following": len(self._runs),
            **{f"workers.{name}": number for name, number in sorted(self._counts.items())},
        }

    # -- ports.worker_pools.PlacedWork

    async def perform(self, assignment: Assignment, context: Relay, files: Mapping[str, Path]) -> Report:
        task = assignment.task
        if task.run.claim is None:
            raise LedgerError(f"Task {task.id} was started without a claim.")
        run = FollowedRun(assignment, context, files)
        self._runs[task.id] = run
        if assignment.again:
            self._do(self.state.follow(task.id, run.fence, run.claim))
        elif task.id in self.state.runs:
            self._grant(run)
        try:
            return await run.outlast(self._cancel)
        finally:
            if self._runs.get(task.id) is run:
                del self._runs[task.id]

    def detach(self, task: Task) -> bool:
        run = self._runs.get(task.id)
        if run is not None:
            run.end(Report(detached=True))
            self.state.let_go(task.id)
        return run is not None

    async def read(self, task: Task, stream: str, offset: int, most: int) -> Chunk:
        return await self._requests.read(_claim(task), stream=stream, offset=offset, most=most)

    async def tail(self, task: Task, stream: str, lines: int, most: int) -> Chunk:
        return await self._requests.read(_claim(task), stream=stream, lines=lines, most=most)

    async def changed(self, task: Task, stream: str, seen: int) -> bool:
        return await self._requests.watch(_claim(task), stream, seen)

    async def write(self, task: Task, data: bytes, *, eof: bool) -> None:
        run = self._runs.get(task.id)
        if run is None:
            raise NotFound(f"Task {task.id} is not followed here, so it cannot be sent anything.")
        await run.write(self._requests, data, eof=eof)

    # -- from workers

    def _receive(self, worker: str, frame: bytes) -> None:
        data = self._parts.setdefault(worker, PartAssembly()).joined(frame)
        if data is None:
            return
        try:
            self._take(worker, say.from_worker(data))
        except say.UnreadableMessage as problem:
            self._counts["refused_messages"] += 1
            if problem.code == "unknown_protocol":
                self.state.speaks_otherwise(worker, problem.protocol)
                self._tell(worker, say.DeniedMessage(nonce=""))  # which it refuses, and logs
            if worker not in self._refused and len(self._refused) < 1_000:
                self._refused.add(worker)
                logger.warning("A message of worker %s was refused: %s", worker, problem)

    def _take(self, worker: str, said: say.FromWorker) -> None:
        match said:
            case say.ClaimMessage():
                self._do(self.state.claim(worker, said))
            case say.AliveMessage():
                self._do(self.state.alive(worker, said))
                self.state.note_clock(worker, said, self._clock.now())
                self._set_slots(POOL + said.pool)
            case say.EndedMessage():
                self._do(self.state.ended(worker, said))
            case say.UnknownMessage():
                self._do(self.state.unknown(worker, said))
            case say.AnswerMessage():
                self._requests.answered(said)
            case say.SayingMessage():
                if run := self._run_of(worker, said.nonce):
                    run.said(said)
            case say.AskedMessage():
                if run := self._run_of(worker, said.nonce):
                    self._start(run.ask(said, self._tell))
            case say.WithdrawnMessage():
                if run := self._run_of(worker, said.nonce):
                    run.context.withdraw(said.question, said.reply)

    def _run_of(self, worker: str, nonce: str) -> FollowedRun | None:
        task = self.state.saying(worker, nonce)
        return None if task is None else self._runs.get(task)

    def _set_slots(self, place: str) -> None:
        if self._ledger is not None:
            self._ledger.set_slots(place, self.state.slots(_pool(place)))

    # -- effects

    def _do(self, effects: list[OwnerEffect]) -> None:
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: OwnerEffect) -> None:
        match effect:
            case Publish(task, _):
                self._start(self._publish(task))
            case Tell(worker, message):
                self._counts["denied"] += isinstance(message, say.DeniedMessage)
                self._tell(worker, message)
            case SendGrant(task, _):
                if run := self._runs.get(task):
                    self._grant(run)
            case Commit(task, fence, claim):
                self._start(self._commit(task, fence, claim))
            case Conclude(task, worker, ended):
                self._start(self._conclude(task, worker, ended))
            case Settle(worker, ended):
                self._start(self._settle(worker, ended))
            case StopStray():
                self._start(self._stop_stray(effect))
            case Lose(task, reason):
                self._counts["lost"] += 1
                self._end(task, Report(lost=reason))
            case Unbegun(task):
                self._counts["unbegun"] += 1
                self._end(task, Report(unbegun=True))

    def _end(self, task: str, report: Report) -> None:
        if run := self._runs.get(task):
            run.end(report)

    async def _publish(self, id: str) -> None:
        task = self._offered.get(id)
        if task is None:
            return
        pool = _pool(task.place)
        if pool not in self._pools:
            await self._carrier.add_pool(pool)
            self._pools.add(pool)
        self._counts["offered"] += 1
        offer = self._signer.signed(say.encode(say.offer_of(task, pool)))
        self._carrier.offer(pool, say.offer_key(task), offer)

    async def _commit(self, task: str, fence: Fence, claim: Claim) -> None:
        done = False
        try:
            done = self._ledger is not None and await self._ledger.claimed(task, fence, claim)
        except (MeantimeError, OSError) as problem:  # the worker claims again
            logger.warning("The claim of %s by worker %s was not recorded: %s", task, claim.worker, problem)
        if done:
            self._counts["claimed"] += 1
            self._offered.pop(task, None)
        self._do(self.state.committed(task, claim, done=done))

    def _grant(self, run: FollowedRun) -> None:
        """Not by a later owner, which does not have the values of its variables: the run is then denied,
        found to have never begun, and offered again if it can be."""
        if run.assignment.again and not run.task.work.faithful:
            self._tell(run.claim.worker, say.DeniedMessage(nonce=run.claim.nonce))
        else:
            self._tell(run.claim.worker, run.granted())

    async def _conclude(self, task: str, worker: str, ended: say.EndedMessage) -> None:
        """The output is here before the ending is recorded, and recorded before the worker forgets it."""
        run = self._runs.get(task)
        if run is None:
            self.state.not_concluded(task)
            return
        was_over = await self._is_over(task, ended.fence)
        spill = await copy_files(self._requests, run.claim, ended, run.files, self._patience)
        run.relay(ended.said, ended.age)
        if not was_over:
            self._unheard[task] = (worker, ended.nonce, ended.fence)
        run.end(replace(from_wire(ended.report), spill=spill))
        if was_over:  # it was left behind: what it says now may not even be recorded
            self._do(self.state.recorded(task, worker, ended.nonce))

    async def _is_over(self, task: str, fence: Fence) -> bool:
        """Whether the ledger has this run as over already."""
        assert self._record is not None
        try:
            known = await self._record.current(task)
        except NotFound:
            return True
        return known.ended or fence_of(known.run) != fence

    async def _settle(self, worker: str, ended: say.EndedMessage) -> None:
        assert self._ledger is not None
        assert self._record is not None
        try:
            task = await self._record.current(ended.task)
        except NotFound:
            self._tell(worker, say.HeardMessage(nonce=ended.nonce))
            return
        is_same = fence_of(task.run) == ended.fence
        if is_same and not task.ended:
            return  # it is being recorded, or will be followed in a moment
        if is_same:
            self._counts["late_endings"] += 1
            await self._ledger.keep_late(task.id, ended.fence, from_wire(ended.report))
        self._tell(worker, say.HeardMessage(nonce=ended.nonce))

    async def _stop_stray(self, stray: StopStray) -> None:
        """A run that is `lost` may go on: its late result is kept. One that was to be stopped may not."""
        assert self._record is not None
        with suppress(NotFound):
            task = await self._record.current(stray.task)
            claim = task.run.claim
            is_the_run = claim is not None and (claim.worker, claim.nonce) == (stray.worker, stray.nonce)
            if is_the_run and task.status in (Status.CANCELLED, Status.TIMED_OUT):
                self._tell(stray.worker, say.CancelMessage(nonce=stray.nonce, times=stray.times))

    def _cancel(self, run: FollowedRun) -> None:
        if run.context.stops:
            self._tell(run.claim.worker, say.CancelMessage(nonce=run.claim.nonce, times=run.context.stops))

    def _tell(self, worker: str, message: say.FromOwner) -> None:
        for part in cut(self._signer.signed(say.encode(message))):
            self._carrier.to_worker(worker, part)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        async def quietly() -> None:
            try:
                await work
            except Closed:
                pass
            except MeantimeError as problem:
                logger.warning("A step of a worker's run failed: %s", problem)

        if self._closed:
            work.close()
        else:
            self._beside.start(quietly())

    # -- time

    def _arm(self) -> None:
        self._alarm = self._clock.call_later(TICK, self._tick)

    def _tick(self) -> None:
        now = self._clock.monotonic()
        passed, self._ticked = now - self._ticked, now
        self._do(self.state.tick(passed, up=self._carrier.state.up))
        for run in self._runs.values():
            self._cancel(run)
        if not self._is_looking:  # a server that does not answer is not asked by more and more
            self._is_looking = True
            self._start(self._look_at_queues(min(passed, 2 * TICK)))
        if not self._closed:
            self._arm()

    async def _look_at_queues(self, passed: float) -> None:
        try:
            for place in {POOL + pool for pool in self._pools}:
                self._set_slots(place)
                if await self._carrier.is_empty(_pool(place)):
                    again = self.state.empty(place, passed)
                    self._counts["offered_again"] += len(again)
                    self._do(again)
                else:
                    self.state.not_empty(place)
        finally:
            self._is_looking = False


def _pool(place: str) -> str:
    return place.removeprefix(POOL)


def _claim(task: Task) -> Claim:
    if task.run.claim is None:
        raise NotFound(f"Task {task.id} is not at a worker.")
    return task.run.claim
