"""`pytest --place=worker`: functions and commands of a test run at a worker; the test stays as it is.

Every ledger that a test opens gets a carrier and a worker beside it, and everything that can be placed is
placed there. The carrier is in memory; with `--carrier=nats` it is a NATS server of the ledger's own. What
owner and worker say crosses the carrier as bytes. Three things differ from a real deployment, and
tests/workers proves each of them:

- A worker finds a function by name, and tests hand over closures that share events with them. So the worker
  takes the function itself from the owner, in the same process.
- A start returns when its task was claimed, or could not be at once. Without that it returns earlier, with a
  queued task.
- Owner and worker look at each other every 37 s and never give the other up: nothing that crosses this
  carrier is lost, and tests turn the clock by a day.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.waiting import LIMIT, until_async

from meantime.app import components
from meantime.app import meantime as facade
from meantime.app.system_clock import SystemClock
from meantime.app.worker_parts import make_worker
from meantime.carriers.memory import MemoryBroker
from meantime.carriers.nats.nats_owner import NatsOwner
from meantime.carriers.nats.nats_worker import NatsWorker
from meantime.carriers.nats.private_server import PrivateNats, free_port
from meantime.kernel.lifecycle import Status
from meantime.kernel.model import Task
from meantime.kernel.outcomes import Report
from meantime.kernel.pool_slots import Need
from meantime.kernel.work import Order
from meantime.ports.clock import Clock
from meantime.ports.runner import Assignment, Context
from meantime.ports.tasks import Options
from meantime.runners.function import FunctionRunner
from meantime.runners.placed import PlacedRunner
from meantime.runtime.settings import Settings
from meantime.runtime.submit import Submission
from meantime.workers import pools, worker_process
from meantime.workers.pools import WorkerPools
from meantime.workers.worker_process import Worker

PLACE = "pool:default"
NEVER = 1e9  # seconds
TICK = 37.0  # seconds: an alarm that no test waits for
HANDED: dict[str, Assignment] = {}  # by task: what the owner has of its function


class HandedFunctions(FunctionRunner):
    """A worker's runner of functions, which are handed over beside the carrier."""

    async def run(self, assignment: Assignment, context: Context) -> Report:
        own = HANDED.get(assignment.task.id)
        if own is not None:
            assignment = replace(assignment, target=own.target, args=own.args, kwargs=own.kwargs)
        return await super().run(assignment, context)


class NatsBeside:
    """A NATS server of one ledger, which starts when the ledger is opened; as MemoryBroker it makes ends."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._folder = Path(tempfile.mkdtemp(prefix="meantime-nats-"))
        self._server = PrivateNats(self._folder, port=free_port("127.0.0.1"))
        self._server._settle()
        self._server.add_worker("w1", ("default",))

    def owner(self) -> NatsOwner:
        return NatsOwner(self._server.owner_address())

    def worker(self, name: str) -> NatsWorker:
        return NatsWorker(self._server.worker_address(name), name)

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


Broker = MemoryBroker | NatsBeside


class WorkerBeside:
    """The worker of one ledger: it opens and closes with it."""

    def __init__(self, owner: WorkerPools, broker: Broker) -> None:
        self._pools = owner
        self._broker = broker
        self._open, self._close = owner.open, owner.close
        self._home = Path()
        self._worker: Worker | None = None
        owner.open, owner.close = self.open, self.close  # type: ignore[method-assign]

    async def open(self) -> None:
        if isinstance(self._broker, NatsBeside):
            await self._broker.start()
        await self._open()
        self._home = Path(tempfile.mkdtemp(prefix="meantime-worker-"))
        worker = make_worker(
            self._broker.worker("w1"),
            self._home,
            self._pools.public_key,
            slots=10_000,
            shell=True,
            clock=self._broker.clock,
        )
        worker._settings = replace(worker._settings, functions=("*",), kinds=("call", "shell"))
        worker._advertised = ("*",)
        worker._engine._runners["call"] = HandedFunctions()  # type: ignore[attr-defined]
        await worker.open()
        self._worker = worker
        need = Need(PLACE, "call", "any")
        await until_async(lambda: self._pools.state.slots_for(need), "the worker is known")

    async def close(self) -> None:
        if self._worker is not None:
            left = [run for run in self._worker.runs.values() if run.speaks]
            await self._worker.close()
            for run in left:  # its command keeps running, and no worker will have this home again
                await self._worker._engine.runner("shell").end_leftovers(run.task)  # type: ignore[attr-defined]
        await self._close()
        if isinstance(self._broker, NatsBeside):
            await self._broker.stop()
        shutil.rmtree(self._home, ignore_errors=True)


def install(patch: pytest.MonkeyPatch, carrier: str) -> None:
    """Places whatever a test starts. `carrier`: "memory" or "nats"."""
    for module in (pools, worker_process):
        patch.setattr(module, "TICK", TICK)
    patch.setattr(worker_process, "PULL_WAIT", TICK)
    patch.setattr(facade, "joined", partial(_joined, NatsBeside if carrier == "nats" else MemoryBroker))
    patch.setattr(PlacedRunner, "check", _check)
    patch.setattr(Submission, "start", _start)


def _joined(make: Callable[[Clock], Broker], path: Any, link: Any, **given: Any) -> Any:
    settings = given.get("settings")
    if given.get("carrier") is not None or not isinstance(settings, Settings | None):
        return components.joined(path, link, **given)
    broker = make(given.get("clock") or SystemClock())
    given["carrier"] = broker.owner()
    places = {"call": PLACE, "shell": PLACE}
    given["settings"] = replace(settings or Settings(), place=places, worker_lease=NEVER, worker_grace=NEVER)
    found = components.joined(path, link, **given)
    assert found.pools is not None
    WorkerBeside(found.pools, broker)
    return found


def _check(runner: PlacedRunner, task: Task, assignment: Assignment) -> None:
    if task.place:
        HANDED[task.id] = assignment
    runner._own.check(task, assignment)


_submit = Submission.start


async def _start(submission: Submission, thread: str, order: Order, options: Options) -> Task:
    task = await _submit(submission, thread, order, options)
    offered = submission._admission._offered
    async with asyncio.timeout(LIMIT):
        while task.place and task.id in offered:  # noqa: ASYNC110  at every start, mostly a few turns
            await asyncio.sleep(0)
    known = submission._record.live.get(task.id)
    return known if known is not None and known.status is not Status.QUEUED else task
