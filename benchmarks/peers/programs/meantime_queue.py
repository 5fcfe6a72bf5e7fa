"""Meantime with workers over NATS: `meantime_queue.py client|worker`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import facts
from meantime_telling import Telling

from meantime import Call, Limits, Meantime, Settings, WakeBudget
from meantime.app.worker_parts import make_worker
from meantime.carriers.carrier_url import owner_carrier, worker_carrier

FOLDER = Path(os.environ["QUEUE_FOLDER"])
PLACE = "pool:default"


async def client() -> None:
    lease = float(os.environ["QUEUE_VISIBILITY"]) / 2
    settings = Settings(
        limits=Limits(per_thread=-1), worker_lease=lease, worker_grace=lease, wakes=WakeBudget(rounds=-1)
    )
    carrier = owner_carrier(os.environ["QUEUE_URL"])
    async with Meantime.open(FOLDER / "work.db", carrier=carrier, settings=settings) as mt:
        assert mt._pools is not None
        (FOLDER / "key").write_text(mt._pools.public_key)

        async def submit(id: str, seconds: float) -> None:
            work = Call(facts.waited, id, seconds)
            await mt.thread("bench").start(work, id=id, place=PLACE, retry="idempotent")

        telling = Telling(mt.thread("bench"))

        async def cancel(id: str) -> None:
            await mt.thread("bench").cancel(id)

        await facts.Commands(submit, telling.result, cancel).serve()


async def worker() -> None:
    name = sys.argv[2]
    url = os.environ["QUEUE_URL"].replace("owner:", f"worker-{name}:")
    key = (FOLDER / "key").read_text()
    found = make_worker(worker_carrier(url, name), FOLDER / name, key, tools=["facts"], slots=20)
    await found.open()
    await asyncio.Event().wait()


asyncio.run(client() if sys.argv[1] == "client" else worker())
