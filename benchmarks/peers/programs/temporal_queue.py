"""Temporal's dev server: `temporal_queue.py client|worker`. A task is a workflow with one activity, which
sends heartbeats: only they bring it a cancel."""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    import facts

QUEUE = "bench"


@activity.defn
async def work(given: list[Any]) -> float:
    id, seconds = given

    async def beat() -> None:
        while True:
            activity.heartbeat()
            await asyncio.sleep(0.5)

    beating = asyncio.create_task(beat())
    try:
        return await facts.waited(id, seconds)
    finally:
        beating.cancel()


@workflow.defn(sandboxed=False)
class Work:
    @workflow.run
    async def run(self, given: list[Any]) -> float:
        return await workflow.execute_activity(
            work,
            given,
            start_to_close_timeout=timedelta(seconds=120),
            heartbeat_timeout=timedelta(seconds=float(os.environ["QUEUE_VISIBILITY"])),
            cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )


async def client() -> None:
    found = await Client.connect(os.environ["QUEUE_URL"])

    async def submit(id: str, seconds: float) -> None:
        await found.start_workflow(Work.run, [id, seconds], id=id, task_queue=QUEUE)

    async def result(id: str) -> float:
        return await found.get_workflow_handle(id).result()

    async def cancel(id: str) -> None:
        await found.get_workflow_handle(id).cancel()

    await facts.Commands(submit, result, cancel).serve()


async def worker() -> None:
    found = await Client.connect(os.environ["QUEUE_URL"])
    async with Worker(
        found,
        task_queue=QUEUE,
        workflows=[Work],
        activities=[work],
        max_concurrent_activities=20,
        max_heartbeat_throttle_interval=timedelta(seconds=1),
    ):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(client() if sys.argv[1] == "client" else worker())
