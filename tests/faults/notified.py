"""A program whose work tells its conversation something all the time, to be killed while it does so.

    python -m tests.faults.notified <folder> <seed> each|rarely [PLANT]

It writes down outside what it is about to tell ("attempt") and what was taken ("accepted"). Its conversation
has its transcript in our store. After SIGKILL it is started again on the same ledger.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
from pathlib import Path

from tests.waiting import pause_async

from meantime import Call, Meantime, NoticeRate, Settings
from meantime.kernel.notice_sources import SourceKind, parse_notice_id

from . import notify_plants, works

RATES = {
    "each": NoticeRate(seconds=0.0, per_minute=1_000_000),
    "rarely": NoticeRate(seconds=0.2, per_minute=1_000_000),
}
FACTS = "facts"
LEDGER = "ledger.db"


def say(fd: int, what: str, event: str) -> None:
    os.write(fd, f"{what} {event}\n".encode())


async def live(folder: Path, rng: random.Random, rate: NoticeRate) -> None:
    """Tells and is told, until it is killed. The moment is of the seed; what it meets is not."""
    kill = threading.Timer(0.2 + rng.random() * 0.7, lambda: os.kill(os.getpid(), signal.SIGKILL))
    facts = os.open(folder / FACTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    settings = Settings(notices=rate, reconcile_every=0.5)
    async with Meantime.open(folder / LEDGER, settings=settings) as mt:
        thread = mt.thread("a")
        handle = await thread.start(Call(asyncio.Event().wait))
        listening = asyncio.create_task(listen(mt, rng))
        for count in range(1_000_000):
            event = f"{os.getpid()}-{count}"
            say(facts, "attempt", event)
            await thread.notify(handle, event)
            say(facts, "accepted", event)
            if count == 0:
                kill.start()
            if rng.random() < 0.3:
                await pause_async(rng.random() * 0.01, "a paced load")
        listening.cancel()


async def listen(mt: Meantime, rng: random.Random) -> None:
    thread = mt.thread("a")
    async for _ in thread.wakeups():
        await take(mt)
        await pause_async(rng.random() * 0.03, "a turn takes a moment")


async def take(mt: Meantime) -> int:
    """One turn: every event goes into the transcript with its count, in one transaction with the ack."""
    thread = mt.thread("a")
    async with thread.turn() as turn:
        for notice in turn.notices:
            if notice.body is not None:
                line = f"{notice.body.count} {notice.body.first or notice.text} {notice.text}"
                thread.transcript.add(notice.id, line)
        if turn.notices:
            await turn.ack(transcript=thread.transcript)
        return len(turn.notices)


async def recover(folder: Path) -> list[tuple[str, int, str, str]]:
    """All that the conversation was told in the end: notice, count, first and last event."""
    async with Meantime.open(folder / LEDGER) as mt:
        while await take(mt):
            pass
        entries = await mt.thread("a").transcript.entries()
    told: list[tuple[str, int, str, str]] = []
    for entry in entries:
        ref = parse_notice_id(entry.notice or "")
        if ref is not None and ref.kind is SourceKind.EVENT:
            count, first, last = entry.message.text.split(" ")
            told.append((entry.notice or "", int(count), first, last))
    return told


def main() -> None:
    folder, seed, rate, *plant = sys.argv[1:]
    if plant:
        getattr(notify_plants, plant[0])()
    works.watch()
    asyncio.run(live(Path(folder), random.Random(int(seed)), RATES[rate]))


if __name__ == "__main__":
    main()
