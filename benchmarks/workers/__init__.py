"""Work at workers over NATS: its costs beside the same work here, and beside other queues under faults."""

from __future__ import annotations

import asyncio

from . import active, costs, others


async def run() -> None:
    await costs.run()
    await active.run()
    await asyncio.to_thread(others.run)
