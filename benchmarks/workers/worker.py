"""A worker in a process of its own.

python -m benchmarks.workers.worker <url> <name> <home> <key> <slots>
"""

from __future__ import annotations

import asyncio
import sys

from meantime.app.worker_parts import make_worker
from meantime.carriers.carrier_url import worker_carrier

from . import noops


async def live(url: str, name: str, home: str, key: str, slots: int) -> None:
    carrier = worker_carrier(url, name)
    worker = make_worker(carrier, home, key, tools=[noops.__name__], shell=True, slots=slots)
    await worker.open()
    await asyncio.Event().wait()


_, address, own, folder, pinned, count = sys.argv
asyncio.run(live(address, own, folder, pinned, int(count)))
