"""The owner's side of workers: offers what is queued, grants what is claimed, follows what runs elsewhere.

`owner_state.py` decides; this carries out its effects over a carrier, and answers for the runs to the
runtime. Everything that is sent may be lost, so everything is repeated: by the worker, or by `_tick`.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from meantime.kernel.errors import Closed, LedgerError, MeantimeError, NotFound, Refused
from meantime.kernel.model import Chunk, Claim, Task, fence_of
from meantime.kernel.outcomes import Report
from meantime.kernel.pool_slots import POOL, need_of
from meantime.link.frames import Fence
from meantime.ports.carrier import CarrierState, OwnerCarrier
from meantime.ports.clock import Alarm, Clock
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.executors import Relay
from meantime.ports.runner import Assignment, Leftovers
from meantime.ports.worker_pools import CurrentTasks, PlacedTasks, WorkerAbout

from . import messages as say
from .effects import Commit, Conclude, Lose, OwnerEffect, Publish, SendGrant, Settle, StopStray, Tell, Unbegun
from .followed_run import FollowedRun, claim_of
from .grant_seal import OwnerSeal
from .owner_key import Signer
from .owner_post import OwnerPost
from .owner_state import GRACE, LEASE, OwnerState
from .pool_watch import WAIT, PoolWatch
from .run_endings import RunEndings
from .worker_requests import WorkerRequests

logger = logging.getLogger("meantime")
TICK = 0.5  # seconds
AWAY = 5.0  # seconds of silence after which a worker is not asked for output: nobody waits for it


class WorkerPools:
    """ports.worker_pools: Placing and PlacedWork."""

    def __init__(
        self,
        carrier: OwnerCarrier,
        load_signer: Callable[[], Signer],
        clock: Clock,
        *,
        lease: float = LEASE,
        grace: float = GRACE,
        wait: float = WAIT,
    ) -> None:
        self._carrier = carrier
        self._clock = clock
        self.state = OwnerState(lease, grace)
        self.slots_for, self.missing = self.state.slots_for, self.state.missing
        self._offered: dict[str, Task] = {}
        self._runs: dict[str, FollowedRun] = {}
        self._stopping: dict[str, FollowedRun] = {}  # asked to stop: which is repeated until they end
        self._beside = BackgroundTasks()
        self._counts: Counter[str] = Counter()
        self._post = OwnerPost(carrier, load_signer, self._counts, self.state.speaks_otherwise)
        self._seal = OwnerSeal()
        self._requests = WorkerRequests(self._tell, clock, lambda: carrier.state.up)
        self._endings = RunEndings(self.state, self._requests, self._post.tell, self._counts, lease + grace)
        self._watch = PoolWatch(self.state, carrier, clock, self._counts, wait)
        self._alarm: Alarm | None = None
        self._ticked = clock.monotonic()
        self._ledger: PlacedTasks | None = None
        self._is_looking = False  # at the queues
        self._closed = False

    @property
    def public_key(self) -> str:
        """The key that workers pin."""
        return self._post.signer.public

    # -- life

    async def open(self) -> None:
        self._post.load_key()
        await self._carrier.open(self._receive, self._state_changed)
        self._ticked = self._clock.monotonic()
        self._arm()

    async def close(self) -> None:
        self._closed = True
        if self._alarm is not None:
            self._alarm.cancel()
        self._requests.close()
        await self._beside.close()
        self._post.batch.flush()
        await self._carrier.close()

    def _state_changed(self, state: CarrierState) -> None:
        if not state.up and not self._closed:
            logger.warning("The carrier is down: %s", state.reason)

    # -- ports.worker_pools.Placing

    def check(self, place: str) -> str:
        return place if place.startswith(POOL) else ""

    def join(self, placed: PlacedTasks, record: CurrentTasks) -> None:
        self._ledger = placed
        self._endings.join(placed, record)

    def offer(self, task: Task) -> None:
        self._offered[task.id] = task
        self._do(self.state.offer(task.id, fence_of(task.run), need_of(task)))

    def recorded(self, task: Task) -> None:
        """The ledger moved on: an ending that it has now is acknowledged, an offer of what ended is void."""
        if task.ended and task.id in self._offered:
            self._withdraw(task.id)
        self._do(self._endings.recorded(task))

    def _withdraw(self, id: str) -> None:
        self.state.withdraw(id)
        self._post.withdraw(self._offered.pop(id))

    def last_line(self, task: Task) -> tuple[str, float | None]:
        run = self._runs.get(task.id)
        return ("", None) if run is None else run.last_line

    def about(self) -> tuple[WorkerAbout, ...]:
        return self.state.about()

    def counters(self) -> Mapping[str, int]:
        return self._watch.counters(len(self._runs))

    # -- ports.worker_pools.PlacedWork

    def keep_output(self, kind: str, files: Callable[[Task], Mapping[str, Path]]) -> None:
        self._endings.files[kind] = files

    async def perform(self, assignment: Assignment, context: Relay, files: Mapping[str, Path]) -> Report:
        task = assignment.task
        if task.run.claim is None:
            raise LedgerError(f"Task {task.id} was started without a claim.")
        run = FollowedRun(assignment, context, files, self._clock)
        self._runs[task.id] = run
        self._cancel(run)
        if assignment.again:
            self._do(self.state.follow(task.id, run.fence, run.claim))
        elif task.id in self.state.runs:
            self._grant(run)
        try:
            return await run.outlast(self._cancel)
        finally:
            if self._runs.get(task.id) is run:
                del self._runs[task.id]
                self._stopping.pop(task.id, None)

    def detach(self, task: Task) -> bool:
        run = self._runs.get(task.id)
        if run is not None:
            run.end(Report(detached=True))
            self.state.let_go(task.id)
        return run is not None

    async def read(self, task: Task, stream: str, offset: int, most: int) -> Chunk:
        return await self._requests.read(self._reached(task), stream=stream, offset=offset, most=most)

    async def tail(self, task: Task, stream: str, lines: int, most: int) -> Chunk:
        return await self._requests.read(self._reached(task), stream=stream, lines=lines, most=most)

    async def changed(self, task: Task, stream: str, seen: int) -> bool:
        return await self._requests.watch(self._reached(task), stream, seen)

    async def write(self, task: Task, data: bytes, *, eof: bool) -> None:
        run = self._runs.get(task.id)
        if run is None:
            raise NotFound(f"Task {task.id} is not followed here, so it cannot be sent anything.")
        await run.write(self._requests, data, eof=eof)

    async def end_leftovers(self, task: Task) -> Leftovers:
        return await self._requests.end_leftovers(self._reached(task), task)

    def _reached(self, task: Task) -> Claim:
        """The claim of a run whose worker can be asked. Raises Refused for one that has been away."""
        claim = claim_of(task)
        silent = self.state.silence(claim)
        if (silent is None and task.ended) or (silent is not None and silent > AWAY):
            since = task.run.ended_at or 0.0 if silent is None else self._clock.now() - silent
            raise Refused(
                f"Worker {claim.worker} has been away since {_moment(since)}; the output is there.",
                code="worker_away",
                hint="It is fetched when the worker is back; `meantime workers` shows who is there.",
            )
        return claim

    # -- from workers

    def _receive(self, worker: str, frame: bytes) -> None:
        for said in self._post.read(worker, frame):
            self._take(worker, said)

    def _take(self, worker: str, said: say.FromWorker) -> None:
        match said:
            case say.ClaimMessage():
                if self._seal.can_reach(said.key):
                    self._do(self.state.claim(worker, said))
                else:
                    self._do([Tell(worker, say.DeniedMessage(nonce=said.nonce))])
            case say.AliveMessage():
                self._do(self.state.alive(worker, said))
                self.state.note_clock(worker, said, self._clock.now())
                self._workers_changed()
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
            case say.NotifiedMessage():
                if run := self._run_of(worker, said.nonce):
                    self._start(run.note(said, self._tell))
                else:
                    self._start(self._endings.refuse_event(worker, said))
            case say.WithdrawnMessage():
                if run := self._run_of(worker, said.nonce):
                    run.context.withdraw(said.question, said.reply)

    def _run_of(self, worker: str, nonce: str) -> FollowedRun | None:
        task = self.state.saying(worker, nonce)
        return None if task is None else self._runs.get(task)

    def _workers_changed(self) -> None:
        """Offers that nobody is left to claim are queued again: they would keep others from being offered."""
        if self._ledger is None or not self._watch.has_changed():
            return
        for task in self.state.unserved():
            self._withdraw(task)
            self._ledger.take_back(task)
        self._ledger.workers_changed()

    # -- effects

    def _do(self, effects: list[OwnerEffect]) -> None:
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: OwnerEffect) -> None:
        match effect:
            case Publish(task, _):
                if offered := self._offered.get(task):
                    self._start(self._publish(offered))
            case Tell(worker, message):
                self._counts["denied"] += isinstance(message, say.DeniedMessage)
                self._post.tell(worker, message)
            case SendGrant(task, _):
                if run := self._runs.get(task):
                    self._grant(run)
            case Commit(task, fence, claim):
                self._start(self._commit(task, fence, claim))
            case Conclude(task, worker, ended):
                self._start(self._conclude(task, worker, ended))
            case Settle(worker, ended):
                self._start(self._endings.settle(worker, ended))
            case StopStray():
                self._start(self._endings.stop_stray(effect))
            case Lose(task, reason, why):
                self._counts[f"lost_{why}"] += 1
                self._end(task, Report(lost=reason))
            case Unbegun(task):
                self._counts["unbegun"] += 1
                self._end(task, Report(unbegun=True))

    def _end(self, task: str, report: Report) -> None:
        if run := self._runs.get(task):
            run.end(report)

    async def _publish(self, task: Task) -> None:
        if self._offered.get(task.id) is task:
            await self._post.publish(task)

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

    async def _conclude(self, task: str, worker: str, ended: say.EndedMessage) -> None:
        self._do(await self._endings.conclude(self._runs.get(task), task, worker, ended))

    def _grant(self, run: FollowedRun) -> None:
        """Not by a later owner, which does not have the values of its variables: the run is then denied,
        found to have never begun, and offered again if it can be."""
        if run.assignment.again and not run.task.work.faithful:
            self._post.tell(run.claim.worker, say.DeniedMessage(nonce=run.claim.nonce))
            return
        worker = run.claim.worker
        if sealed := self._seal.sealed(run.granted(), self.state.key_of(run.claim), worker):
            self._post.tell(worker, sealed)

    def _tell(self, claim: Claim, message: say.FromOwner) -> None:
        """Texts and answers are sealed for the life of the worker that has the claim now. Until its key is
        known they are not sent: the request, or the question, is repeated."""
        said: say.FromOwner | None = message
        if isinstance(message, say.SendMessage | say.RepliedMessage):
            key = self.state.key_of(claim)
            if not key or self.state.opens_input(claim):
                said = self._seal.sealed_input(message, key, claim.worker)
        if said is not None:
            self._post.tell(claim.worker, said)

    def _cancel(self, run: FollowedRun) -> None:
        if run.context.stops:
            self._stopping[run.task.id] = run
            stop = say.CancelMessage(nonce=run.claim.nonce, times=run.context.stops)
            self._post.tell(run.claim.worker, stop)

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
        self._workers_changed()
        for run in self._stopping.values():
            self._cancel(run)
        if self._ledger is not None:
            for id, reason in self._watch.given_up(self._ledger, passed):
                self._start(self._ledger.give_up_waiting(id, reason))
        if not self._is_looking:  # a server that does not answer is not asked by more and more
            self._is_looking = True
            self._start(self._look_at_queues(min(passed, 2 * TICK)))
        if not self._closed:
            self._arm()

    async def _look_at_queues(self, passed: float) -> None:
        try:
            for pool in list(self._post.pools):
                self._do(await self._watch.look_at(pool, passed))
        finally:
            self._is_looking = False


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))
