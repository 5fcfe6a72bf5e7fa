"""The protocol of owner and workers, in simulated time, with a carrier that loses, doubles, delays and
reorders, and crashes of everybody. A failure prints its seed: `played(seed)` repeats it exactly."""

from __future__ import annotations

import pytest

from meantime.kernel.model import Claim
from meantime.workers.effects import Begin, Conclude, OwnerEffect, Settle, Tell, Unbegun, WorkerEffect
from meantime.workers.messages import (
    AliveMessage,
    EndedMessage,
    GrantedMessage,
    HaveMessage,
    HeardMessage,
    OfferMessage,
)
from meantime.workers.owner_records import ASK_AFTER, RunState
from meantime.workers.owner_state import MOST_RECORDED, OwnerState
from meantime.workers.worker_state import JournalEntry, WorkerSideState, lost_ending

from .simulation import Row, as_task, faults_of, played

SEEDS = range(1, 11)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_fault_of_the_carrier_or_of_a_process_breaks_a_promise(seed: int):
    """0 told twice, 0 runs begun twice, all idempotent functions completed."""
    world = played(seed)
    assert faults_of(world) == [], f"seed {seed}"
    assert sum(world.begun.values()) >= len(world.ledger) - 5


def test_without_faults_every_task_is_begun_once_and_completes():
    world = played(1, kills=0, owner_kills=0, loss=0.0, double=0.0, late=0.0)
    assert faults_of(world) == []
    assert set(world.executions.values()) == {1}
    assert {row.outcome for row in world.ledger.values()} == {"completed"}


# -- planted bugs: each is found, or this suite proves nothing


class BeginsBeforeTheGrant(WorkerSideState):
    def offered(self, offer: OfferMessage, nonce: str) -> list[WorkerEffect]:
        effects = super().offered(offer, nonce)
        row = Row(offer.task, offer.work, False)
        row.attempt = offer.fence[1]
        self.journal[nonce] = JournalEntry(GrantedMessage(nonce=nonce, task=as_task(row)))
        return [*effects, Begin(GrantedMessage(nonce=nonce, task=as_task(row)))]


class TrustsAlive(OwnerState):
    """Concludes from an `alive`, which may be older than the grant, that a run was never begun."""

    def alive(self, worker: str, said: AliveMessage) -> list[OwnerEffect]:
        super().alive(worker, said)
        gone = [task for task, run in self.runs.items() if run.claim.worker == worker and _misses(run)]
        for task in gone:
            self.let_go(task)
        return [Unbegun(task) for task in gone]


def _misses(run: RunState) -> bool:
    return run.missing >= ASK_AFTER and not run.is_concluding


class OffersWhileQueued(OwnerState):
    def not_empty(self, pool: str) -> None:
        self.planted = super().empty(pool, 0.25)

    def tick(self, seconds: float, *, up: bool = True) -> list[OwnerEffect]:
        planted, self.planted = getattr(self, "planted", []), []
        return [*super().tick(seconds, up=up), *planted]


class HeardBeforeRecorded(OwnerState):
    def ended(self, worker: str, said: EndedMessage) -> list[OwnerEffect]:
        return [Tell(worker, HeardMessage(nonce=said.nonce)), *super().ended(worker, said)]


TWICE, AS_ONE_RUN, QUEUED = "not idempotent and was begun", "times as run", "while it was in the queue"
PLANTED = {
    "begin before the grant": (AS_ONE_RUN, {"worker_state": BeginsBeforeTheGrant}),
    "forget the journal": (TWICE, {"forgets_journal": True}),
    "trust `alive`": (TWICE, {"owner_state": TrustsAlive}),
    "offer again while it is queued": (QUEUED, {"owner_state": OffersWhileQueued}),
    "heard before it is recorded": (TWICE, {"owner_state": HeardBeforeRecorded}),
}


@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_found(bug: str):
    symptom, planted = PLANTED[bug]
    found = [fault for seed in SEEDS for fault in faults_of(played(seed, owner_kills=6, **planted))]
    assert any(symptom in fault for fault in found), bug


def test_an_ending_that_is_repeated_is_acknowledged_without_a_look_at_the_ledger():
    state = OwnerState()
    task = as_task(Row("t1", "call", False))
    claim = Claim("w1", "home", "boot", "n1")
    state.follow("t1", (1, 1), claim)
    ended = lost_ending(GrantedMessage(nonce="n1", task=task))
    assert state.ended("w1", ended) == [Conclude("t1", "w1", ended)]
    heard = [Tell("w1", HeardMessage(nonce="n1"))]
    assert state.recorded("t1", "w1", "n1") == heard
    assert state.ended("w1", ended) == heard
    assert state.ended("w2", ended) == [Settle("w2", ended)]  # another worker's word is looked at
    for number in range(MOST_RECORDED):
        state.recorded("t2", "w1", f"later-{number}")
    assert state.ended("w1", ended) == [Settle("w1", ended)]


class CountedRuns(dict[str, RunState]):
    looks = 0

    def __getitem__(self, task: str) -> RunState:
        self.looks += 1
        return super().__getitem__(task)


def _alive(runs: list[str]) -> AliveMessage:
    tasks = tuple(f"t{nonce}" for nonce in runs)
    return AliveMessage(home="h", boot="b", pool="default", slots=9, runs=tuple(runs), tasks=tasks, key="k")


def test_runs_that_their_worker_lists_are_not_looked_at_one_by_one():
    """A worker may have thousands of them, and lists them twice a second."""
    state = OwnerState()
    nonces = [f"n{number}" for number in range(2_000)]
    for nonce in nonces:
        state.follow(f"t{nonce}", (1, 1), Claim("w1", "h", "b", nonce))
    assert state.alive("w1", _alive(nonces)) == []
    assert all(run.is_begun for run in state.runs.values())
    state.runs = counted = CountedRuns(state.runs)
    for _ in range(5):
        assert state.alive("w1", _alive(nonces)) == []
        assert state.tick(0.5) == []
    assert counted.looks == 0
    asked: list[OwnerEffect] = []
    for _ in range(3):
        asked += [*state.alive("w1", _alive(nonces[1:])), *state.tick(0.5)]
    assert asked == [Tell("w1", HaveMessage(nonce="n0"))] * 2  # at the second, and a second later
    assert counted.looks < 20
    state.alive("w1", _alive(nonces))
    assert state.runs["tn0"].missing == 0
    assert not state.workers["w1", "h"].unsure
