"""A process of its own, for scenarios with several: `python racing.py ids|claim|tell LEDGER ...`."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from tests.waiting import until_async

from meantime import Call, Duplicate, LedgerBusy, Meantime


async def ids(mt: Meantime, count: str) -> list[str]:
    """Starts many jobs at once; prints their ids."""
    thread = mt.thread("conv-1")
    handles = await asyncio.gather(*(thread.start(Call(asyncio.sleep, 0)) for _ in range(int(count))))
    await thread.wait(*handles)
    return [handle.id for handle in handles]


async def claim(mt: Meantime, id: str) -> str:
    """Tries to start a job with an id that others want, too."""
    try:
        await (await mt.thread("conv-1").start(Call(asyncio.sleep, 0), id=id)).wait()
    except Duplicate as refused:
        return refused.code
    return "won"


async def tell(mt: Meantime, thread_id: str) -> list[str]:
    """One emitter: a turn that puts what is unread into the conversation."""
    thread = mt.thread(thread_id)
    transcript = thread.transcript
    async with thread.turn() as turn:
        for notice in turn.notices:
            transcript.add(notice.id, notice.message())
        await turn.ack(transcript=transcript)
    return [notice.id for notice in turn.notices]


VERBS = {"ids": ids, "claim": claim, "tell": tell}


async def main(verb: str, ledger: str, argument: str) -> Any:
    said: list[str] = []

    async def opened() -> Meantime | None:
        try:
            return await Meantime.open(ledger)
        except LedgerBusy:
            if not said:
                print("busy", flush=True)  # noqa: T201  so that the owner knows that we stand at the door
            said.append("busy")
            return None

    mt = await until_async(opened, "the ledger is free")
    try:
        return await VERBS[verb](mt, argument)
    finally:
        await mt.close()


if __name__ == "__main__":
    sys.stdin.readline()  # all wait here, so that they start together
    json.dump(asyncio.run(main(*sys.argv[1:])), sys.stdout)
