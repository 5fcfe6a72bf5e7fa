"""dramatiq on Redis: `dramatiq_queue.py` is the client; its worker is `dramatiq dramatiq_queue`."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import dramatiq
import facts
from dramatiq.brokers.redis import RedisBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

broker = RedisBroker(url=os.environ["QUEUE_URL"])
broker.add_middleware(Results(backend=RedisBackend(url=os.environ["QUEUE_URL"])))
dramatiq.set_broker(broker)


@dramatiq.actor(store_results=True)
def work(id: str) -> str:
    return id


async def noops(count: int) -> dict[str, Any]:
    messages = [work.send(str(number)) for number in range(count)]
    for message in messages:
        await asyncio.to_thread(message.get_result, block=True, timeout=120_000)
    return {}


if __name__ == "__main__":
    asyncio.run(facts.serve({"noops": noops}))
