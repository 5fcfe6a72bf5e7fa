"""Celery on Redis: `celery_queue.py`; its worker is `celery -A celery_queue worker`."""

from __future__ import annotations

import asyncio
import os

import facts
from celery import Celery
from celery.exceptions import SoftTimeLimitExceeded

app = Celery("celery_queue", broker=os.environ["QUEUE_URL"], backend=os.environ["QUEUE_URL"])
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={
        "visibility_timeout": float(os.environ["QUEUE_VISIBILITY"]),
        "unacked_restore_interval": 1,  # otherwise abandoned tasks are looked for every 100 seconds
        "unacked_restore_throttle": 1,
    },
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


@app.task(name="work")
def work(id: str, seconds: float) -> float:
    try:
        return facts.slept(id, seconds)
    except SoftTimeLimitExceeded:
        facts.say("cancelled", id)
        raise


async def submit(id: str, seconds: float) -> None:
    work.apply_async((id, seconds), task_id=id)


async def result(id: str) -> float:
    return await asyncio.to_thread(app.AsyncResult(id).get)


async def cancel(id: str) -> None:
    app.control.revoke(id, terminate=True, signal="SIGUSR1")


if __name__ == "__main__":
    asyncio.run(facts.Commands(submit, result, cancel).serve())
