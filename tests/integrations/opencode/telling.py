"""An owner of a ledger that tells an OpenCode session, and dies by `kill -9` at a chosen place:
`python -m tests.integrations.opencode.telling PLACE LEDGER URL SESSION`. Without a place it goes on until
everything is told."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

from tests.waiting import until_async

from meantime import Call, Meantime, OpenCodeHost
from meantime.integrations.opencode.wire.api_client import ApiClient

COUNT = 4


def work(number: int) -> str:
    return f"result {number}"


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dying(place: str) -> None:
    """Makes the client die: before or after one of its calls, or while the server has it in hand."""
    name, _, when = place.rpartition(" ")
    if not name:
        return
    call = getattr(ApiClient, name)

    async def instead(self: ApiClient, *arguments: Any) -> Any:
        if when == "before":
            die()
        if when == "during":
            asyncio.get_running_loop().call_later(0.004, die)
        answer = await call(self, *arguments)
        if when == "after":
            die()
        return answer

    setattr(ApiClient, name, instead)


class Dies(OpenCodeHost):
    async def deliver(self, *arguments: Any) -> None:
        await super().deliver(*arguments)
        die()


async def main(place: str, ledger: str, url: str, session: str) -> None:
    dying(place)
    async with Meantime.open(ledger) as mt:
        thread = mt.thread(session)
        for number in range(COUNT - len(await mt.list())):
            await (await thread.start(Call(work, number))).wait()
        kind = Dies if place == "told" else OpenCodeHost
        mt.attach(session, kind(url, session))
        await until_async(lambda: is_told(mt), "everything is told", mt.notices)
        print(*[notice.id for notice in await mt.notices("told")])


async def is_told(mt: Meantime) -> bool:
    return not await mt.notices()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
