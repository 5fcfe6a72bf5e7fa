"""A process that dies by `kill -9` at a chosen place: `python crashing.py PLACE LEDGER`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from typing import Any, NoReturn

import chores
from tests.waiting import until_async

from meantime import Agent, Call, Handle, Limits, Meantime, Settings
from meantime.runtime.runtime import Runtime
from meantime.testing import FakeClock, FakeSessionRunner


def die(**handles: Handle | str) -> NoReturn:
    """Says what there was, and is gone: no close, no `finally`."""
    ids = {name: handle if isinstance(handle, str) else handle.id for name, handle in handles.items()}
    print(json.dumps(ids), flush=True)  # noqa: T201
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("dead")


async def working(mt: Meantime, ledger: str) -> NoReturn:
    """With work in every state that a restart must mend."""
    thread = mt.thread("conv-1")
    stopping = await thread.start(Call(stubborn))
    await RUNNING.wait()
    await stopping.cancel()
    running = await thread.start(Call(chores.forever), description="index", timeout=60)
    witness = f"{ledger}.witness"
    again = await thread.start(Call(chores.once_or_twice, witness), retry="idempotent")
    await until_async(
        lambda: os.path.exists(witness) and os.path.getsize(witness), "it runs for the first time"
    )
    queued = await thread.start(Call(chores.add, 2, second=3))
    unfindable = await thread.start(Call(lambda: "gone"))
    unreadable: list[Any] = [{1, 2}, object()]
    unfaithful = await thread.start(Call(chores.add, *unreadable))
    die(
        stopping=stopping, running=running, again=again, queued=queued,
        unfindable=unfindable, unfaithful=unfaithful,
    )  # fmt: skip


RUNNING = asyncio.Event()


async def stubborn() -> None:
    RUNNING.set()
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


async def agent(mt: Meantime, ledger: str) -> NoReturn:
    """While an agent works in a session that outlives us."""
    handle = await mt.thread("conv-1").start(Agent("held", "one"))
    assert isinstance(mt._runtime, Runtime)
    store = mt._runtime.store

    async def session() -> str | None:
        stored = await store.load(handle.id)
        return stored.session if stored else None

    die(agent=handle, session=await until_async(session, "the ledger knows the session"))


async def leased(mt: Meantime, ledger: str) -> NoReturn:
    """In a turn, before its ack."""
    handle = await _ended(mt)
    async with mt.thread("conv-1").turn() as turn:
        die(handle=handle, notice=turn.notices[0].id)


async def saved(mt: Meantime, ledger: str) -> NoReturn:
    """In a turn whose conversation is saved, before the ack."""
    handle = await _ended(mt)
    transcript = mt.thread("conv-1").transcript
    async with mt.thread("conv-1").turn() as turn:
        (notice,) = turn.notices
        transcript.add(notice.id, notice.message())
        await transcript.save()
        die(handle=handle, notice=notice.id)


async def acked(mt: Meantime, ledger: str) -> NoReturn:
    """Right after the ack."""
    handle = await _ended(mt)
    transcript = mt.thread("conv-1").transcript
    async with mt.thread("conv-1").turn() as turn:
        (notice,) = turn.notices
        transcript.add(notice.id, notice.message())
        await turn.ack(transcript=transcript)
        die(handle=handle, notice=notice.id)


async def reminding(mt: Meantime, ledger: str) -> NoReturn:
    """With a thousand reminders, by both clocks in turn, which come while nobody is there."""
    thread = mt.thread("conv-1")
    for n in range(1_000):
        due: dict[str, Any] = {"at": time.time() + 60 + n} if n % 2 else {"delay": 60.0 + n}
        await thread.remind(f"{n}", **due)
    die()


async def reminded(mt: Meantime, ledger: str) -> NoReturn:
    """When some of the reminders that were due have come, and not all."""
    assert isinstance(mt._runtime, Runtime)
    waking = mt._runtime.waking
    before = waking.unread("conv-1")
    while waking.unread("conv-1") < before + 300:  # noqa: ASYNC110  in a pause all would come
        await asyncio.sleep(0)
    die(left=str(mt._runtime.reminding.pending))


async def _ended(mt: Meantime) -> Handle:
    handle = await mt.thread("conv-1").start(Call(chores.add, 2, 3))
    await handle.wait()
    return handle


async def main(place: str, ledger: str) -> None:
    agents = FakeSessionRunner()
    agents.hold()
    settings = Settings(limits=Limits(per_thread=3))
    clock = FakeClock(time.time() + 7_200) if place == "reminded" else None  # after another start
    mt = await Meantime.open(ledger, settings=settings, runners=[agents], clock=clock)
    await globals()[place](mt, ledger)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
