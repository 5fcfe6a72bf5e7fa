"""procrastinate on PostgreSQL: `procrastinate_queue.py client|worker`. It keeps no results: the moment of
an end is in a file, and the status of a job is asked for."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import facts
from procrastinate import App, PsycopgConnector, RetryStrategy
from procrastinate.jobs import Status

ENDS = Path(os.environ["QUEUE_FOLDER"]) / "ends"
LEASE = float(os.environ["QUEUE_VISIBILITY"])
SOON = 0.005  # seconds between looks for a status
OVER = {Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.ABORTED}
app = App(connector=PsycopgConnector(conninfo=os.environ["QUEUE_URL"]))
jobs: dict[str, int] = {}


@app.task(name="work", retry=RetryStrategy(max_attempts=3))
async def work(id: str, seconds: float) -> None:
    ended = await facts.waited(id, seconds)
    if id.startswith("one-"):
        (ENDS / id).write_text(str(ended))


@app.periodic(cron="* * * * * */5")  # the seconds come last
@app.task(name="retry_stalled", queueing_lock="retry_stalled", pass_context=True)
async def retry_stalled(context: object, timestamp: int) -> None:
    """As its guide has it: jobs of workers that are gone are tried again."""
    for job in await app.job_manager.get_stalled_jobs(seconds_since_heartbeat=LEASE):
        await app.job_manager.retry_job(job)


async def submit(id: str, seconds: float) -> None:
    jobs[id] = await work.configure(lock=id).defer_async(id=id, seconds=seconds)


async def result(id: str) -> float:
    while id not in jobs:
        for job in await app.job_manager.list_jobs_async(lock=id):
            jobs[id] = job.id or 0
        await asyncio.sleep(SOON)
    status = Status.TODO
    while status not in OVER:
        await asyncio.sleep(SOON)
        status = await app.job_manager.get_job_status_async(jobs[id])
    if status is not Status.SUCCEEDED:
        raise RuntimeError(status.value)
    return float((ENDS / id).read_text()) if id.startswith("one-") else 0.0


async def main(part: str) -> None:
    ENDS.mkdir(exist_ok=True)
    async with app.open_async():
        if part == "worker":
            await app.run_worker_async(
                concurrency=20, update_heartbeat_interval=1, stalled_worker_timeout=LEASE
            )
        if not await app.check_connection_async():
            await app.schema_manager.apply_schema_async()
        await facts.Commands(submit, result).serve()


asyncio.run(main(sys.argv[1]))
