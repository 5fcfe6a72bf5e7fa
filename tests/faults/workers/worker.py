"""A worker with a home of its own, as `meantime worker` makes it.

python -m tests.faults.workers.worker <folder> <url> <name> <slots>
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from pathlib import Path

from tests.waiting import LIMIT

from meantime.app.worker_parts import make_worker
from meantime.carriers.carrier_url import worker_carrier
from meantime.engines.local import LocalEngine
from meantime.kernel.outcomes import Report
from meantime.ports.carrier import WorkerCarrier
from meantime.ports.runner import Assignment, Context

from .. import works
from . import jobs
from .memory_carrier import SocketWorker
from .plants import plant


def carrier(url: str, name: str) -> WorkerCarrier:
    return SocketWorker(url, name) if url.startswith("memory:") else worker_carrier(url, name)


def show_fences() -> None:
    """The work can say which attempt it is."""
    perform = LocalEngine.perform

    async def performed(self: LocalEngine, assignment: Assignment, context: Context) -> Report:
        jobs.FENCE.set(assignment.fence)
        return await perform(self, assignment, context)

    LocalEngine.perform = performed  # type: ignore[method-assign]


async def live(folder: Path, url: str, name: str, slots: int) -> None:
    key = (folder / "key").read_text()
    home = folder / f"home-{name}"
    worker = make_worker(carrier(url, name), home, key, tools=[jobs.__name__], shell=True, slots=slots)
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    await worker.open()
    os.write(1, b"open\n")
    await over.wait()
    await worker.drain(LIMIT)
    await worker.close()


if __name__ == "__main__":
    works.watch(30 * LIMIT)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    _, place, address, own, count = sys.argv
    works.SYNCED = False  # only processes die here
    works.open_ledger(Path(place))
    plant("worker")
    jobs.mend_sleep()
    show_fences()
    asyncio.run(live(Path(place), address, own, int(count)))
