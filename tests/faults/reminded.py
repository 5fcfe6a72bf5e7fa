"""A program that reminds its conversation of something all the time, to be killed while it does so.

    python -m tests.faults.reminded story|load|recover <folder> <seed>

It writes down outside what it is about to do ("attempt", "cancel") and what was answered ("accepted",
"cancelled"). Its conversation has its transcript in our store. MEANTIME_FAULT_PLANT names a planted bug.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from tests.waiting import pause_async, until_async

from meantime import Meantime, Refused, Settings

from . import remind_plants, works

FACTS = "facts"
LEDGER = "ledger.db"
PLANT = "MEANTIME_FAULT_PLANT"
STORY = 12  # reminders of a story


def ledger(folder: Path) -> Path:
    return folder / LEDGER


class Life:
    def __init__(self, mt: Meantime, folder: Path, rng: random.Random) -> None:
        self._thread = mt.thread("a")
        self._rng = rng
        self._facts = os.open(folder / FACTS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._count = 0

    def _say(self, what: str, text: str) -> None:
        os.write(self._facts, f"{what} {text}\n".encode())

    async def remind(self) -> None:
        """One more, which is due soon; some are cancelled again."""
        self._count += 1
        text = f"{os.getpid()}-{self._count}"
        self._say("attempt", text)
        wait = self._rng.random() * 0.2
        if self._rng.random() < 0.5:
            schedule = await self._thread.remind(text, delay=wait)
        else:
            schedule = await self._thread.remind(text, at=time.time() + wait)
        self._say("accepted", text)
        if self._rng.random() < 0.3:
            self._say("cancel", text)
            try:
                await self._thread.cancel_schedule(schedule)
            except Refused:
                return  # it has come
            self._say("cancelled", text)

    async def take(self) -> int:
        """One turn: every reminder goes into the transcript, in one transaction with the ack."""
        transcript = self._thread.transcript
        async with self._thread.turn() as turn:
            for notice in turn.notices:
                transcript.add(notice.id, notice.text)
            if turn.notices:
                await turn.ack(transcript=transcript)
            return len(turn.notices)

    async def listen(self) -> None:
        async for _ in self._thread.wakeups():
            await self.take()

    async def finish(self) -> None:
        """Until all have come and were told."""

        async def is_out() -> bool:
            return not await self._thread.schedules(limit=1) and not await self.take()

        await until_async(is_out, "all have come and were told")

    async def told(self) -> list[str]:
        return [f"{entry.notice} {entry.message.text}" for entry in await self._thread.transcript.entries()]


async def play(mode: str, folder: Path, rng: random.Random) -> None:
    settings = Settings(reconcile_every=0.2)
    async with Meantime.open(ledger(folder), settings=settings) as mt:
        life = Life(mt, folder, rng)
        if mode == "recover":
            await life.finish()
            (folder / "told").write_text("".join(f"{line}\n" for line in await life.told()))
            return
        listening = asyncio.create_task(life.listen())
        await life.remind()
        if mode == "load":  # the moment is of the seed; what it meets is not
            seconds = 0.2 + rng.random() * 0.7
            threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        for _ in range(STORY if mode == "story" else 1_000_000):
            await life.remind()
            if rng.random() < 0.3:
                await pause_async(rng.random() * 0.02, "a paced load")
        await life.finish()
        listening.cancel()


def main(argv: Sequence[str]) -> None:
    mode, folder, seed = argv
    if plant := os.environ.get(PLANT):
        getattr(remind_plants, plant)()
    rng = random.Random(int(seed))
    print("begin", flush=True)
    works.watch()
    asyncio.run(play(mode, Path(folder), rng))


if __name__ == "__main__":
    main(sys.argv[1:])
