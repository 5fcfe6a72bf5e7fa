"""dramatiq on Redis: `dramatiq_queue.py` is the client; its worker is `dramatiq dramatiq_queue`."""

from __future__ import annotations

import asyncio
import os

import dramatiq
import facts
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

URL = os.environ["QUEUE_URL"]
LEASE = int(float(os.environ["QUEUE_VISIBILITY"]) * 1_000)
OFTEN = (
    20_000  # of a million commands look for dead workers; with its default of 1,000 that takes minutes here
)
broker = RedisBroker(url=URL, heartbeat_timeout=LEASE, maintenance_chance=OFTEN)
broker.add_middleware(Results(backend=RedisBackend(url=URL)))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def work(id: str, seconds: float) -> float:
    return facts.slept(id, seconds)


def message(id: str, seconds: float) -> dramatiq.Message[float]:
    return work.message(id, seconds).copy(message_id=id)


async def submit(id: str, seconds: float) -> None:
    broker.enqueue(message(id, seconds))


async def result(id: str) -> float:
    return await asyncio.to_thread(message(id, 0.0).get_result, block=True, timeout=120_000)


if __name__ == "__main__":
    asyncio.run(facts.Commands(submit, result).serve())
