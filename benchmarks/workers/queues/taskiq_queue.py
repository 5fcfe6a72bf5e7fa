"""taskiq on a Redis stream: `taskiq_queue.py` is the client; its worker is `taskiq worker`."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import facts
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

URL = os.environ["QUEUE_URL"]
broker = RedisStreamBroker(URL).with_result_backend(RedisAsyncResultBackend(URL))


@broker.task(task_name="work")
async def work(id: str) -> str:
    return id


async def noops(count: int) -> dict[str, Any]:
    sent = [await work.kiq(str(number)) for number in range(count)]
    for one in sent:
        await one.wait_result(check_interval=0.005, timeout=120)
    return {}


async def main() -> None:
    await broker.startup()
    await facts.serve({"noops": noops})


if __name__ == "__main__":
    asyncio.run(main())
