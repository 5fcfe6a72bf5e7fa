"""A dev server is watched while an agent does something else: it is told of each error, once.

python examples/watched_server.py

The server is a shell loop. Watches need RE2: pip install 'meantime[watch]'.
"""

from __future__ import annotations

import asyncio

from meantime import Meantime, Shell, Watch

SERVER = "echo listening on 8080; for n in 1 2; do sleep 1.2; echo ERROR: request $n failed; done; echo bye"


async def main() -> None:
    async with Meantime.open(":memory:") as mt:
        thread = mt.thread("conv-1")
        server = await thread.start(Shell(SERVER), description="dev server")
        ready = await thread.start(Watch(log=server, match="listening", once=True), description="is it up?")
        errors = await thread.start(Watch(log=server, match="ERROR"), description="errors")
        over = False
        async for _ in thread.wakeups():  # the agent is idle: each notice wakes it
            async with thread.turn() as turn:
                for notice in turn.notices:
                    if notice.task_id in (ready.id, errors.id):
                        print(f"{notice.kind:>6} | {notice.task.title} | {notice.text!r}")
                    over = over or (notice.task_id == errors.id and notice.kind == "ending")
                await turn.ack()
            if over:
                break


asyncio.run(main())
