"""DBOS in one process, on SQLite or PostgreSQL: a task is a durable workflow, recovered at the next start."""

from __future__ import annotations

import asyncio
import os

import facts
from dbos import DBOS, SetWorkflowID

SOON = 0.005  # seconds between looks for a result
DBOS(
    config={
        "name": "bench",
        "system_database_url": os.environ["QUEUE_URL"].format(folder=os.environ["QUEUE_FOLDER"]),
        "application_version": "1",  # the same after a restart, so that its workflows are recovered
        "log_level": "ERROR",
    }
)


@DBOS.workflow()
async def work(id: str, seconds: float) -> float:
    return await facts.waited(id, seconds)


async def submit(id: str, seconds: float) -> None:
    with SetWorkflowID(id):
        await DBOS.start_workflow_async(work, id, seconds)


async def result(id: str) -> float:
    handle = await DBOS.retrieve_workflow_async(id)
    return await handle.get_result(polling_interval_sec=SOON)


async def main() -> None:
    DBOS.launch()
    await facts.Commands(submit, result).serve()


asyncio.run(main())
