"""Work at workers over NATS: what it costs beside the same work here, and beside other queues."""

from __future__ import annotations

from . import active, costs


async def run() -> None:
    await costs.run()
    await active.run()
