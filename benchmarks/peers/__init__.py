"""The same no-op work on peers that a user might pick instead: latencies, rate, CPU, memory, and a kill -9.

    make bench NAMES=peers                          all of them
    make bench NAMES=peers ROWS="huey DBOS"         only the rows with these words in their names

They are not dependencies of ours: each is in an environment of its own, .peers/NAME. Command queues are in
benchmarks/queues.py.
"""

from __future__ import annotations

import asyncio


async def run() -> None:
    from .peer_run import run_all  # the crew is used by others, which need no rows

    await asyncio.to_thread(run_all)
