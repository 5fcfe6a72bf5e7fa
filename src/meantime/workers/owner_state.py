"""The owner's part of the protocol, as pure decisions: what was offered, who claimed it, who is silent.

It has no clock and sends nothing. Time comes in by `tick`, messages by the other methods; each returns the
effects to carry out. The ledger is the truth: a claim counts once `committed` says that it is on record, and
an ending is acknowledged once `recorded` says so.
"""

from __future__ import annotations

from meantime.kernel.model import Claim as ClaimOnRecord
from meantime.kernel.pool_slots import Need
from meantime.ports.worker_pools import WorkerAbout

from . import capabilities
from .capabilities import Capability
from .effects import Commit, Conclude, Lose, OwnerEffect, Publish, SendGrant, Settle, StopStray, Tell, Unbegun
from .messages import (
    PROTOCOL,
    AliveMessage,
    ClaimMessage,
    DeniedMessage,
    EndedMessage,
    Fence,
    HaveMessage,
    HeardMessage,
    UnknownMessage,
)
from .owner_records import ASK_AFTER, ASK_AGAIN, OfferState, RunState, WorkerState

LEASE, GRACE = 30.0, 30.0  # seconds of silence after which the runs of a worker are lost, all in all
REPUBLISH = 1.0  # seconds for which the queue must be empty before what is unclaimed is offered again
MOST_RECORDED = 10_000  # claims whose endings were recorded last: a repeated one needs no look at the ledger
STRAY_GRACE = 5.0  # seconds after which a run that was to be stopped long ago is stopped harder
MOST_HOMES = 8  # of one worker's name that are remembered: a login can say what it likes of its home
MOST_WORKERS = 2_000  # that are remembered; of both the one that is silent longest goes, if it has no runs
MOST_STRANGERS = 100  # workers of other protocols that are listed
LATE = 1.5  # seconds: three `alive`s; one that is a moment late does not mean that the worker is away
LONGEST_STEP = 2.0  # seconds that one tick counts for: while we were frozen, nobody was silent
SILENT = "Its worker {worker} sent nothing for {seconds:.0f} s; how far it got is not known."
RESTARTED = "The machine of its worker {worker} was restarted; how far it got is not known."


class OwnerState:
    def __init__(self, lease: float = LEASE, grace: float = GRACE) -> None:
        self._patience = lease + grace
        self.offers: dict[str, OfferState] = {}
        self.runs: dict[str, RunState] = {}
        self.workers: dict[tuple[str, str], WorkerState] = {}
        self._by_nonce: dict[str, str] = {}
        self._strangers: dict[str, int] = {}  # protocols of workers that speak another one
        self.changes = 0  # of what the workers can perform
        self._now = 0.0  # seconds, by our ticks
        self._recorded: dict[str, str] = {}  # workers, by nonce

    # -- what the ledger has

    def offer(self, task: str, fence: Fence, need: Need) -> list[OwnerEffect]:
        self.offers.pop(task, None)
        self.offers[task] = offer = OfferState(fence, need, self._now)
        return [Publish(task, offer.pool)]

    def withdraw(self, task: str) -> None:
        """It was cancelled, or is not to be claimed for another reason."""
        self.offers.pop(task, None)

    def follow(self, task: str, fence: Fence, claim: ClaimOnRecord) -> list[OwnerEffect]:
        """A run that an earlier owner has granted: whether it was begun is asked."""
        self._keep_run(task, RunState(fence, claim, asked=True))
        return self._ask(self.runs[task])

    def committed(self, task: str, claim: ClaimOnRecord, *, done: bool) -> list[OwnerEffect]:
        """The result of a Commit. Not done: the run was cancelled, or the ledger took no write; the worker
        claims again, or is denied then."""
        offer = self.offers.get(task)
        if offer is None or offer.nonce != claim.nonce:
            return [Tell(claim.worker, DeniedMessage(nonce=claim.nonce))]
        if not done:
            offer.nonce = ""
            return []
        del self.offers[task]
        self._keep_run(task, RunState(offer.fence, claim, asked=False))
        return [SendGrant(task, claim)]

    def recorded(self, task: str, worker: str, nonce: str) -> list[OwnerEffect]:
        run = self.runs.get(task)
        if run is not None and run.claim.nonce == nonce:
            self.let_go(task)
        self._recorded[nonce] = worker
        if len(self._recorded) > MOST_RECORDED:
            del self._recorded[next(iter(self._recorded))]
        return [Tell(worker, HeardMessage(nonce=nonce))]

    def let_go(self, task: str) -> None:
        """The run is not followed any more."""
        run = self.runs.pop(task, None)
        if run is not None:
            nonce = run.claim.nonce
            del self._by_nonce[nonce]
            worker = self._worker(run.claim.worker, run.claim.home)
            worker.runs.pop(nonce, None)
            worker.unsure.discard(nonce)

    def _keep_run(self, task: str, run: RunState) -> None:
        self.let_go(task)
        self.runs[task] = run
        self._by_nonce[run.claim.nonce] = task
        worker = self._worker(run.claim.worker, run.claim.home)
        worker.runs[run.claim.nonce] = task
        worker.unsure.add(run.claim.nonce)

    def _worker(self, name: str, home: str) -> WorkerState:
        known = self.workers.get((name, home))
        if known is not None:
            return known
        self._make_room([key for key in self.workers if key[0] == name], MOST_HOMES)
        self._make_room(list(self.workers), MOST_WORKERS)
        made = self.workers[name, home] = WorkerState()
        return made

    def _make_room(self, keys: list[tuple[str, str]], most: int) -> None:
        if len(keys) < most:
            return
        idle = [key for key in keys if not self.workers[key].runs]
        if idle:
            del self.workers[max(idle, key=lambda key: self.workers[key].silent)]
            self.changes += 1

    def run_of(self, worker: str, nonce: str) -> str | None:
        """The task whose run this worker has under this nonce."""
        task = self._by_nonce.get(nonce)
        return task if task is not None and self.runs[task].claim.worker == worker else None

    # -- what workers say

    def speaks_otherwise(self, worker: str, protocol: int) -> None:
        """A worker of another version, for people to see."""
        if worker in self._strangers or len(self._strangers) < MOST_STRANGERS:
            self._strangers[worker] = protocol

    def claim(self, worker: str, said: ClaimMessage) -> list[OwnerEffect]:
        state = self._heard(worker, said.home)
        state.key, state.opens_input = said.key, said.opens_input
        if (task := self.run_of(worker, said.nonce)) is not None:
            run = self.runs[task]
            return [] if run.is_begun else [SendGrant(task, run.claim)]  # the grant was lost
        offer = self.offers.get(said.task)
        if offer is None or offer.fence != said.fence or offer.nonce not in ("", said.nonce):
            return [Tell(worker, DeniedMessage(nonce=said.nonce))]
        if offer.nonce == said.nonce:
            return []  # its commit is under way
        offer.nonce = said.nonce
        return [Commit(said.task, said.fence, ClaimOnRecord(worker, said.home, said.boot, said.nonce))]

    def alive(self, worker: str, said: AliveMessage) -> list[OwnerEffect]:
        """A claim that is not listed is asked for. Nothing is concluded from it: this message may be older
        than the grant."""
        state = self._heard(worker, said.home)
        state.alive, state.key, state.opens_input = said, said.key, said.opens_input
        self._note(worker, state, said)
        listed = set(said.runs)
        effects: list[OwnerEffect] = []
        for nonce in sorted(state.unsure & listed):
            self._begun(self.runs[state.runs[nonce]])
        for nonce in sorted(state.runs.keys() - listed):
            run = self.runs[state.runs[nonce]]
            run.missing += 1
            state.unsure.add(nonce)
            if run.missing >= ASK_AFTER:
                effects += self._ask(run)
        return effects + self._strays(worker, state, said, listed)

    def _begun(self, run: RunState) -> None:
        run.is_begun, run.missing = True, 0
        self._worker(run.claim.worker, run.claim.home).unsure.discard(run.claim.nonce)

    def note_clock(self, worker: str, said: AliveMessage, now: float) -> None:
        """Only for people to see: nothing is decided by it."""
        self._worker(worker, said.home).skew = said.sent - now if said.sent else 0.0

    def _note(self, worker: str, state: WorkerState, said: AliveMessage) -> None:
        """Not every message lists the functions."""
        functions = frozenset(said.functions) or (frozenset() if state.can is None else state.can.functions)
        can = Capability(
            worker, said.pool, said.slots, said.labels, said.kinds, functions, said.draining, bool(said.key)
        )
        if can != state.can:
            state.can = can
            self.changes += 1

    def _strays(
        self, worker: str, state: WorkerState, said: AliveMessage, listed: set[str]
    ) -> list[OwnerEffect]:
        """Runs that were given up here and go on there: a cancelled command whose worker was away."""
        unknown = listed - self._by_nonce.keys()
        named = zip(said.runs, said.tasks, strict=False) if unknown else ()  # an older worker says no tasks
        strays = {nonce: task for nonce, task in named if task and nonce in unknown}
        state.strays = {nonce: state.strays.get(nonce, 0.0) for nonce in strays}
        return [
            StopStray(worker, task, nonce, 1 if state.strays[nonce] < STRAY_GRACE else 2)
            for nonce, task in strays.items()
        ]

    def saying(self, worker: str, nonce: str) -> str | None:
        """The run of which this worker speaks, if it is followed."""
        task = self.run_of(worker, nonce)
        if task is not None:
            run = self.runs[task]
            self._begun(run)
            self._heard(worker, run.claim.home)
        return task

    def ended(self, worker: str, said: EndedMessage) -> list[OwnerEffect]:
        if self._recorded.get(said.nonce) == worker:
            return [Tell(worker, HeardMessage(nonce=said.nonce))]
        task = self.saying(worker, said.nonce)
        if task is None:
            return [Settle(worker, said)]
        run = self.runs[task]
        if run.is_concluding:
            return []
        run.is_concluding = True
        return [Conclude(task, worker, said)]

    def not_concluded(self, task: str) -> None:
        """A Conclude could not be carried out: the worker's next `ended` tries again."""
        if task in self.runs:
            self.runs[task].is_concluding = False

    def unknown(self, worker: str, said: UnknownMessage) -> list[OwnerEffect]:
        """A journal that does not have a claim of its own home and boot proves that the run never began."""
        task = self.run_of(worker, said.nonce)
        if task is None or self.runs[task].is_concluding:
            return []
        claim = self.runs[task].claim
        if claim.home != said.home:
            return []  # another worker of this name: the silence of the first one decides
        self._heard(worker, said.home)
        self.let_go(task)
        if claim.boot and claim.boot == said.boot:
            return [Unbegun(task)]
        return [Lose(task, RESTARTED.format(worker=worker), "restarted")]

    def _heard(self, worker: str, home: str) -> WorkerState:
        state = self._worker(worker, home)
        state.silent = 0.0
        if state.is_away:
            state.is_away = False
            self.changes += 1
        return state

    def _ask(self, run: RunState) -> list[OwnerEffect]:
        if self._now - run.asked_at < ASK_AGAIN:
            return []
        run.asked_at = self._now
        return [Tell(run.claim.worker, HaveMessage(nonce=run.claim.nonce))]

    # -- time

    def tick(self, seconds: float, *, up: bool = True) -> list[OwnerEffect]:
        """So many seconds have passed. While the carrier is down no message arrives, so nobody is silent."""
        step = min(seconds, LONGEST_STEP)
        effects: list[OwnerEffect] = []
        self._now += step
        for key, state in list(self.workers.items()):
            state.silent += step if up else 0.0
            if not state.is_away and state.silent > max(self._patience / 2, LATE):
                state.is_away = True
                self.changes += 1
            if state.silent > self._patience:
                effects += self._lose(key, state)
                continue
            for nonce in state.strays:
                state.strays[nonce] += step
            for nonce in sorted(state.unsure):
                run = self.runs[state.runs[nonce]]
                if run.missing >= ASK_AFTER and not run.is_concluding:
                    effects += self._ask(run)
        return effects

    def _lose(self, key: tuple[str, str], state: WorkerState) -> list[OwnerEffect]:
        lost = sorted(task for task in state.runs.values() if not self.runs[task].is_concluding)
        for task in lost:
            self.let_go(task)
        if not state.runs:
            del self.workers[key]
            self.changes += 1
        reason = SILENT.format(worker=key[0], seconds=self._patience)
        return [Lose(task, reason, "silent") for task in lost]

    def empty(self, pool: str, seconds: float) -> list[OwnerEffect]:
        """The queue of the pool was empty during the last seconds, for certain: unclaimed offers are lost."""
        effects: list[OwnerEffect] = []
        for task, offer in self.offers.items():
            if offer.pool != pool or offer.nonce:
                continue
            offer.empty_for += seconds
            if offer.empty_for >= REPUBLISH:
                offer.empty_for = 0.0
                effects.append(Publish(task, pool))
        return effects

    def not_empty(self, pool: str) -> None:
        for offer in self.offers.values():
            if offer.pool == pool:
                offer.empty_for = 0.0

    # -- who can perform what

    def slots_for(self, need: Need) -> int:
        """The slots of the workers that can perform this, sent a message within the lease, and do not
        drain."""
        able = (state.can for state in self.workers.values() if not state.is_away)
        return sum(can.slots for can in able if can is not None and not can.draining and not can.lacks(need))

    def missing(self, need: Need) -> str:
        """Why nobody can perform this, in words; empty if somebody can."""
        if self.slots_for(need):
            return ""
        known = [state.can for _, state in sorted(self.workers.items()) if state.can is not None]
        return capabilities.missing(known, need)

    def unserved(self) -> list[str]:
        """Offers that nobody is left to claim."""
        slots = {need: self.slots_for(need) for need in {offer.need for offer in self.offers.values()}}
        return [task for task, offer in self.offers.items() if not offer.nonce and not slots[offer.need]]

    # -- numbers

    def key_of(self, claim: ClaimOnRecord) -> str:
        """The key of the worker that has this claim; empty if it has not sent one."""
        state = self.workers.get((claim.worker, claim.home))
        return "" if state is None else state.key

    def opens_input(self, claim: ClaimOnRecord) -> bool:
        """Whether the worker that has this claim opens sealed input: one of an earlier version does not."""
        state = self.workers.get((claim.worker, claim.home))
        return state is not None and state.opens_input

    def silence(self, claim: ClaimOnRecord) -> float | None:
        """Seconds since the last message of the worker that has this claim; None if it is not known."""
        state = self.workers.get((claim.worker, claim.home))
        return None if state is None or state.alive is None else state.silent

    def oldest_offer(self) -> float:
        """Seconds: offers are kept in their order."""
        first = next(iter(self.offers.values()), None)
        return 0.0 if first is None else self._now - first.since

    def about(self) -> tuple[WorkerAbout, ...]:
        return tuple(
            WorkerAbout(
                name,
                one.alive.host,
                one.alive.pool,
                one.alive.slots,
                one.alive.running,
                one.alive.version,
                round(one.silent, 1),
                one.alive.labels,
                one.alive.draining,
                skew=round(one.skew, 1),
            )
            for (name, _), one in sorted(self.workers.items())
            if one.alive is not None
        ) + tuple(
            WorkerAbout(name, "", "", 0, 0, f"protocol {protocol}, not {PROTOCOL}", 0.0)
            for name, protocol in sorted(self._strangers.items())
        )
