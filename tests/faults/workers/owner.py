"""The owner: starts the tasks that it may, and tells four conversations of their endings.

python -m tests.faults.workers.owner <folder> <url> <seed> <tasks> <patience>
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
from pathlib import Path

from tests.waiting import LIMIT, until_async

from meantime import Call, LeaseLost, Meantime, Settings, Shell
from meantime.carriers.carrier_url import owner_carrier
from meantime.kernel.limits import NO_LIMIT, Limits
from meantime.ports.carrier import OwnerCarrier

from .. import works
from ..judge import read_facts
from . import jobs
from .memory_carrier import ACK_WAIT, SocketOwner
from .plants import plant

LONGEST = 30 * LIMIT  # a whole run, on a busy machine
OPEN = ("queued", "running", "waiting", "cancelling", "notices.unread", "notices.leased", "notices.parked")
PLACE = "pool:default"
SEEN = 10  # one of so many tasks is waited for, and its ending written down when it was seen


def carrier(url: str) -> OwnerCarrier:
    return SocketOwner(url) if url.startswith("memory:") else owner_carrier(url, ack_wait=ACK_WAIT)


class Owner:
    def __init__(self, folder: Path, url: str, seed: int, tasks: int, patience: float) -> None:
        self.folder = folder
        self.seed = seed
        self.tasks = tasks
        facts = read_facts(folder / "ledger.jsonl")
        self.next = 1 + max((int(one.note) for one in facts if one.what == "number"), default=-1)
        works.open_ledger(folder)
        self._url = url
        self._settings = Settings(
            limits=Limits(per_thread=-1, total=50),
            worker_lease=patience / 2,
            worker_grace=patience / 2,
            worker_attempts=NO_LIMIT,  # chance may end several workers under one task
            reconcile_every=0.5,
        )
        self._beside: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()

    async def live(self) -> None:
        """Until every task has ended and was told."""
        ledger = self.folder / "work.db"
        async with Meantime.open(ledger, carrier=carrier(self._url), settings=self._settings) as self.mt:
            assert self.mt._pools is not None
            (self.folder / "key").write_text(self.mt._pools.public_key)
            os.write(1, b"open\n")
            threads = [f"a{n}" for n in range(4)]
            telling = [asyncio.create_task(self._tell_on(name)) for name in threads]
            await self._start_all()
            await self._look()
            over = asyncio.create_task(self._over.wait())
            done, _ = await asyncio.wait((over, *telling), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            for task in telling:
                task.cancel()
            await asyncio.gather(*telling, *self._beside, return_exceptions=True)
            self._count()

    async def _look(self) -> None:
        """Whether it is over."""
        self._count()
        counts = await self.mt.stats()
        if self.next >= self.tasks and not any(counts.get(name) for name in OPEN):
            self._over.set()

    def _count(self) -> None:
        assert self.mt._pools is not None
        (self.folder / "counters.json").write_text(json.dumps(dict(self.mt._pools.counters())))

    async def _start_all(self) -> None:
        while self.next < self.tasks:
            await until_async(self._may_start, f"{self.next} tasks may be started", limit=LONGEST)
            await self._start(jobs.job_of(self.seed, self.next))

    def _may_start(self) -> bool:
        return self.next < int((self.folder / "allowed").read_text() or 0)

    async def _start(self, job: jobs.Job) -> None:
        id = f"{job.id}.1"
        works.say("number", job.thread, id, str(self.next))
        self.next += 1
        retry = "idempotent" if job.kind == "idempotent" else ""
        works.say("attempt", job.thread, id, retry)
        if job.kind == "command":
            work = Shell(jobs.command(self.folder, job), cwd="/")
        else:
            work = Call(jobs.blocking if job.is_sync else jobs.waiting, id, job.thread, job.seconds)
        await self.mt.thread(job.thread).start(work, id=job.id, place=PLACE, retry=retry)
        works.say("accepted", job.thread, id)
        if self.next % SEEN == 0:
            seeing = asyncio.create_task(self._see(job))
            self._beside.add(seeing)
            seeing.add_done_callback(self._beside.discard)

    async def _see(self, job: jobs.Job) -> None:
        (task,) = await self.mt.thread(job.thread).wait(job.id)
        works.say("ended", job.thread, f"{job.id}.1", str(task.status))

    async def _tell_on(self, name: str) -> None:
        async for _ in self.mt.thread(name).wakeups():
            with contextlib.suppress(LeaseLost):
                await self._tell(name)
                await self._look()

    async def _tell(self, name: str) -> None:
        async with self.mt.thread(name).turn() as turn:
            if not turn.notices:
                return
            transcript = self.mt.thread(name).transcript
            for notice in turn.notices:
                transcript.add(notice.id, f"{notice.id} {notice.task.status} {notice.number}")
            settled = await turn.ack(transcript=transcript)
            for id in settled.told:
                works.say("acked", name, id)


if __name__ == "__main__":
    works.watch(LONGEST)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    works.SYNCED = False  # only processes die here
    plant("owner")
    jobs.mend_sleep()
    _, place, address, number, count, seconds = sys.argv
    asyncio.run(Owner(Path(place), address, int(number), int(count), float(seconds)).live())
    os.write(1, b"done\n")
