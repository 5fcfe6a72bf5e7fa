"""huey on SQLite with fsync: `huey_queue.py` is the client; `huey_consumer huey_queue.queue` works."""

from __future__ import annotations

import asyncio
import os

import facts
from huey import SqliteHuey

queue = SqliteHuey(filename=os.path.join(os.environ["QUEUE_FOLDER"], "huey.db"), fsync=True)
SOON = 0.005  # seconds between looks for a result


@queue.task()
def work(id: str, seconds: float) -> float:
    return facts.slept(id, seconds)


async def submit(id: str, seconds: float) -> None:
    task = work.s(id, seconds)
    task.id = id
    queue.enqueue(task)


async def result(id: str) -> float:
    """A result is read once; its reader looks for it again and again."""
    while (found := queue.result(id)) is None:  # noqa: ASYNC110 (another process has it)
        await asyncio.sleep(SOON)
    return found


if __name__ == "__main__":
    from huey_queue import result, submit  # a task is named by its module, which is another one here

    asyncio.run(facts.Commands(submit, result).serve())
