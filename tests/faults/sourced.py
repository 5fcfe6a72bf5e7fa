"""A short life with every source of notices that are not endings: a watch that finds lines, work that tells
before its end, reminders that are set, come and are cancelled, starts that are delayed, begin and are
cancelled.

    python -m tests.faults.sourced story|recover <folder> <seed>

To be killed at a system call of our choice. Before each step it writes down outside what it is about to do
("attempt", "cancel"), and afterwards that it was answered ("accepted", "cancelled"). Its conversation has its
transcript in our store. MEANTIME_FAULT_PLANT names a planted bug, as "module.function".
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.waiting import LIMIT, pause_async, until_async

from meantime import Call, Handle, NoticeRate, Refused, Schedule, Settings, Thread, Watch
from meantime.kernel.notice_sources import parse_notice_id

from . import works
from .watched import opened

LEDGER, LINES, TOLD = "ledger.db", "lines", "told"
PLANT = "MEANTIME_FAULT_PLANT"
ROUNDS = 4
SOON, FAR = 0.05, 2.0  # seconds
# Every second event has to wait for its notice, and is told together with the next one.
SETTINGS = Settings(notices=NoticeRate(seconds=0.03, per_minute=1_000_000), reconcile_every=0.2)


def say(what: str, id: str) -> None:
    works.say(what, "a", id)


async def take(thread: Thread) -> int:
    """One turn: all of it goes into the transcript, in one transaction with the ack."""
    async with thread.turn() as turn:
        for notice in turn.notices:
            if (body := notice.body) is None:
                thread.transcript.add(notice.id, "ending")
            else:
                thread.transcript.add(notice.id, f"{body.count}|{body.first or notice.text}|{notice.text}")
        if turn.notices:
            await turn.ack(transcript=thread.transcript)
        return len(turn.notices)


async def listen(thread: Thread) -> None:
    async for _ in thread.wakeups():
        await take(thread)


class Story:
    def __init__(self, thread: Thread, folder: Path) -> None:
        self._thread = thread
        self._folder = folder
        self._lines = os.open(folder / LINES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    async def play(self) -> None:
        teller = await self._start("teller", Call(asyncio.Event().wait))
        watch = Watch(file=self._folder / LINES, match="^ERROR", until="^END")
        await self._start("watch", watch)
        for round_ in range(ROUNDS):
            os.write(self._lines, b"ERROR %d\n" % (2 * round_ + 1))
            await self._notify(teller, f"e{2 * round_ + 1}")
            late = await self._remind(f"r{round_}", SOON)
            never = await self._remind(f"x{round_}", FAR)
            await self._start(f"d{round_}", Call(works.gated, f"d{round_}", "a"), delay=SOON)
            gone = await self._start(f"g{round_}", Call(works.gated, f"g{round_}", "a"), delay=FAR)
            os.write(self._lines, b"ERROR %d\n" % (2 * round_ + 2))
            await self._notify(teller, f"e{2 * round_ + 2}")
            await self._cancel_reminder(never)
            await self._cancel_start(gone)
            if round_ == 1:
                await self._cancel_reminder(late)
            await pause_async(SOON, "reminders and starts come")
        await self._ended(*(f"d{round_}" for round_ in range(ROUNDS)))

    async def _ended(self, *ids: str) -> None:
        async with asyncio.timeout(LIMIT):
            await self._thread.wait(*ids)

    async def _start(self, id: str, work: Call | Watch, delay: float | None = None) -> Handle:
        say("attempt", id)
        handle = await self._thread.start(work, id=id, delay=delay)
        say("accepted", id)
        return handle

    async def _notify(self, teller: Handle, event: str) -> None:
        say("attempt", event)
        await self._thread.notify(teller, event)
        say("accepted", event)

    async def _remind(self, text: str, wait: float) -> Schedule:
        say("attempt", text)
        if text.endswith(("0", "2")):
            schedule = await self._thread.remind(text, at=time.time() + wait)
        else:
            schedule = await self._thread.remind(text, delay=wait)
        say("accepted", text)
        return schedule

    async def _cancel_reminder(self, schedule: Schedule) -> None:
        say("cancel", schedule.text)
        try:
            await self._thread.cancel_schedule(schedule)
        except Refused:
            return  # it has come
        say("cancelled", schedule.text)

    async def _cancel_start(self, task: Handle) -> None:
        say("cancel", task.id)
        await self._thread.cancel(task)
        say("cancelled", task.id)


async def recover(thread: Thread, folder: Path) -> None:
    """Until all that is to come has come and was told."""
    with (folder / LINES).open("a") as lines:
        lines.write("END\n")
    known = [task.id for task in await thread.list(history=True)]
    async with asyncio.timeout(LIMIT):
        await thread.wait(*known)

    async def is_out() -> bool:
        return not await thread.schedules(limit=1) and not await take(thread)

    await until_async(is_out, "all has come and was told")
    told: list[str] = []
    for entry in await thread.transcript.entries():
        ref = parse_notice_id(entry.notice or "")
        of = ref.of if ref is not None else "?"
        told.append(f"{of}\t{entry.notice}\t{entry.message.text}\n")
    (folder / TOLD).write_text("".join(told))


async def live(mode: str, folder: Path) -> None:
    async with opened(folder / LEDGER, SETTINGS) as mt:
        thread = mt.thread("a")
        if mode == "recover":
            await recover(thread, folder)
            return
        listening = asyncio.create_task(listen(thread))
        await Story(thread, folder).play()
        listening.cancel()


def main(argv: Sequence[str]) -> None:
    mode, folder, _seed = argv
    if plant := os.environ.get(PLANT):
        module, _, name = plant.partition(".")
        getattr(importlib.import_module(f"tests.faults.{module}"), name)()
    works.SYNCED = False  # only processes die here
    works.open_ledger(Path(folder))
    works.watch()
    print("begin", flush=True)
    asyncio.run(live(mode, Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
