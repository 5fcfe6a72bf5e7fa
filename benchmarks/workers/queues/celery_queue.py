"""Celery on Redis: `celery_queue.py client`; its worker is `celery -A celery_queue worker`."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

import facts
from celery import Celery
from celery.exceptions import SoftTimeLimitExceeded

app = Celery("celery_queue", broker=os.environ["QUEUE_URL"], backend=os.environ["QUEUE_URL"])
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_transport_options={"visibility_timeout": float(os.environ["QUEUE_VISIBILITY"])},
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
)


@app.task(name="work")
def work(id: str, seconds: float) -> str:
    if seconds:
        facts.say("began", id)
    try:
        time.sleep(seconds)
    except SoftTimeLimitExceeded:
        facts.say("cancelled", id)
        raise
    if seconds:
        facts.say("ended", id)
    return id


async def start(ids: list[str], seconds: float) -> dict[str, Any]:
    for id in ids:
        work.apply_async((id, seconds), task_id=id)
    return {}


async def cancel(id: str) -> dict[str, Any]:
    app.control.revoke(id, terminate=True, signal="SIGUSR1")
    return {}


async def noops(count: int) -> dict[str, Any]:
    results = [work.delay(str(number), 0.0) for number in range(count)]
    for result in results:
        await asyncio.to_thread(result.get, timeout=120)
    return {}


if __name__ == "__main__":
    asyncio.run(facts.serve({"start": start, "cancel": cancel, "noops": noops}))
