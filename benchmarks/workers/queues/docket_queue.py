"""docket on Redis: `docket_queue.py client|worker`."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from typing import Any

import facts
from docket import Docket, Worker

URL = os.environ["QUEUE_URL"]


async def work(id: str, seconds: float) -> str:
    return await facts.waited(id, seconds)


async def client() -> None:
    async with Docket(name="bench", url=URL) as docket:
        docket.register(work)

        async def start(ids: list[str], seconds: float) -> dict[str, Any]:
            for id in ids:
                await docket.add(work, key=id)(id, seconds)
            return {}

        async def cancel(id: str) -> dict[str, Any]:
            await docket.cancel(id)
            return {}

        async def noops(count: int) -> dict[str, Any]:
            added = [await docket.add(work, key=f"noop-{number}")("", 0.0) for number in range(count)]
            for execution in added:
                await execution.get_result(timeout=timedelta(seconds=120))
            return {}

        await facts.serve({"start": start, "cancel": cancel, "noops": noops})


async def worker() -> None:
    lease = timedelta(seconds=float(os.environ["QUEUE_VISIBILITY"]))
    async with Docket(name="bench", url=URL) as docket:
        docket.register(work)
        async with Worker(docket, concurrency=20, redelivery_timeout=lease) as running:
            await running.run_forever()


asyncio.run(client() if sys.argv[1] == "client" else worker())
