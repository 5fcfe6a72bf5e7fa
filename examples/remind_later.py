"""A conversation asks to be reminded, and starts work later. It needs no key and no network."""

from __future__ import annotations

import asyncio

from meantime import Meantime, Shell


async def main() -> None:
    async with Meantime.open(":memory:") as mt:
        thread = mt.thread("conv-1")
        await thread.remind("ask whether the deploy is up", delay=0.2)
        await thread.start(Shell("echo 128 passed"), delay=0.5, description="nightly tests")
        told = 0
        async for _ in thread.wakeups():
            async with thread.turn() as turn:
                for notice in turn.notices:
                    told += 1
                    print(f"{notice.kind:>6} > {notice.text.strip()}")
                await turn.ack()
            if told == 2:
                break


asyncio.run(main())
