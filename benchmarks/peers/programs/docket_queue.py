"""docket: `docket_queue.py client|worker` on Redis; `docket_queue.py both` in one process, for its memory."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from datetime import timedelta
from typing import Any

import facts
from docket import Docket, Worker

URL = os.environ["QUEUE_URL"]
SOON = timedelta(milliseconds=5)


async def work(id: str, seconds: float) -> float:
    return await facts.waited(id, seconds)


async def client(docket: Docket) -> None:
    added: dict[str, Any] = {}

    async def submit(id: str, seconds: float) -> None:
        added[id] = await docket.add(work, key=id)(id, seconds)

    async def result(id: str) -> float:
        execution = added.pop(id, None) or await docket.get_execution(id)
        if execution is None:
            await asyncio.Event().wait()  # it is not known: nobody is told
            raise LookupError(id)
        return await execution.get_result(timeout=timedelta(seconds=120))

    await facts.Commands(submit, result, docket.cancel).serve()


async def worker(docket: Docket, slots: int) -> None:
    lease = timedelta(seconds=float(os.environ["QUEUE_VISIBILITY"]))
    more: dict[str, Any] = {"minimum_check_interval": SOON} if URL.startswith("memory") else {}
    async with Worker(docket, concurrency=slots, redelivery_timeout=lease, **more) as running:
        await running.run_forever()


async def main(part: str) -> None:
    async with Docket(name="bench", url=URL) as docket:
        docket.register(work)
        if part == "worker":
            await worker(docket, 20)
        beside = asyncio.create_task(worker(docket, 100)) if part == "both" else None
        await client(docket)
        if beside is not None:
            beside.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await beside


asyncio.run(main(sys.argv[1]))
