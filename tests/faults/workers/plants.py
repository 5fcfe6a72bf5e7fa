"""Bugs of the protocol, planted in the processes. Each breaks a promise that the judge must see."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tests.waiting import pause_async

from meantime.kernel.model import Claim
from meantime.workers import messages as say
from meantime.workers.effects import OwnerEffect, Unbegun
from meantime.workers.followed_run import FollowedRun
from meantime.workers.journal import ClaimJournal
from meantime.workers.owner_records import ASK_AFTER
from meantime.workers.owner_state import OwnerState
from meantime.workers.pools import WorkerPools
from meantime.workers.run_endings import RunEndings
from meantime.workers.worker_state import JournalEntry

PLANT = "MEANTIME_FAULT_PLANT"


def begin_before_grant() -> None:
    """Everybody who claims may begin, before the ledger has decided whose claim counts."""
    take = WorkerPools._take

    def taken(self: WorkerPools, worker: str, said: say.FromWorker) -> None:
        if isinstance(said, say.ClaimMessage):
            self._start(_grant(self, worker, said))
        take(self, worker, said)

    WorkerPools._take = taken  # type: ignore[method-assign]


async def _grant(pools: WorkerPools, worker: str, said: say.ClaimMessage) -> None:
    from msgspec.structs import replace

    assert pools._endings._record is not None
    task = await pools._endings._record.current(said.task)
    claim = Claim(worker, said.home, said.boot, said.nonce)
    begun = replace(task, run=replace(task.run, claim=claim))
    pools._post.tell(worker, say.GrantedMessage(nonce=said.nonce, task=begun))


def forget_journal() -> None:
    """A worker that restarts knows nothing of what it had begun."""
    opened = ClaimJournal.open

    def empty(self: ClaimJournal) -> dict[str, JournalEntry]:
        for nonce in opened(self):
            self.drop(nonce)
        return {}

    ClaimJournal.open = empty  # type: ignore[method-assign]


def trust_alive() -> None:
    """The owner concludes from an `alive`, which may be older than the grant, that a run never began."""
    alive = OwnerState.alive

    def trusting(self: OwnerState, worker: str, said: say.AliveMessage) -> list[OwnerEffect]:
        alive(self, worker, said)
        gone = [
            task
            for task, run in self.runs.items()
            if run.claim.worker == worker and run.missing >= ASK_AFTER and not run.is_concluding
        ]
        for task in gone:
            self.let_go(task)
        return [Unbegun(task) for task in gone]

    OwnerState.alive = trusting  # type: ignore[method-assign]


def offer_while_queued() -> None:
    """What waits in the queue is offered again."""
    empty = WorkerPools._look_at_queues

    async def looked(self: WorkerPools, passed: float) -> None:
        for pool in list(self._post.pools):
            self._do(self.state.empty(pool, passed))
        await empty(self, passed)

    WorkerPools._look_at_queues = looked  # type: ignore[method-assign]
    OwnerState.not_empty = lambda self, pool: None  # type: ignore[method-assign]


def heard_before_recorded() -> None:
    """The owner says that it has an ending a moment before it has one."""
    conclude = RunEndings.conclude

    async def concluded(
        self: RunEndings, run: FollowedRun | None, task: str, worker: str, ended: say.EndedMessage
    ) -> list[OwnerEffect]:
        self._tell(worker, say.HeardMessage(nonce=ended.nonce))
        await pause_async(4.0, "the owner may be killed")
        return await conclude(self, run, task, worker, ended)

    RunEndings.conclude = concluded  # type: ignore[method-assign]


PLANTS: dict[str, tuple[str, Callable[[], Any]]] = {
    "begin before grant": ("owner", begin_before_grant),
    "forget the journal": ("worker", forget_journal),
    "trust alive": ("owner", trust_alive),
    "offer while queued": ("owner", offer_while_queued),
    "heard before recorded": ("owner", heard_before_recorded),
}


def plant(side: str) -> None:
    where, bug = PLANTS.get(os.environ.get(PLANT, ""), ("", None))
    if bug is not None and where == side:
        bug()
