"""taskiq on a Redis stream: `taskiq_queue.py` is the client; its worker is `taskiq worker`."""

from __future__ import annotations

import asyncio
import os

import facts
from taskiq import AsyncTaskiqTask
from taskiq_redis import RedisAsyncResultBackend, RedisStreamBroker

URL = os.environ["QUEUE_URL"]
LEASE = int(float(os.environ["QUEUE_VISIBILITY"]) * 1_000)
results: RedisAsyncResultBackend[float] = RedisAsyncResultBackend(URL)
broker = RedisStreamBroker(URL, idle_timeout=LEASE).with_result_backend(results)


@broker.task(task_name="work")
async def work(id: str, seconds: float) -> float:
    return await facts.waited(id, seconds)


async def submit(id: str, seconds: float) -> None:
    await work.kicker().with_task_id(id).kiq(id, seconds)


async def result(id: str) -> float:
    found = await AsyncTaskiqTask(id, results).wait_result(check_interval=0.005, timeout=120)
    return found.return_value


async def main() -> None:
    await broker.startup()
    await facts.Commands(submit, result).serve()


if __name__ == "__main__":
    asyncio.run(main())
