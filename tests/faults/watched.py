"""A program that watches a log and a file which never pause, to be killed while it tells of what it finds.

    python -m tests.faults.watched <folder> <seed> [PLANT]

The command that prints outlives it. Every line is a match and has a number, so what was told can be compared
with what was printed. It is killed a moment after one of its commits that move a cursor, which is when a
match and its cursor are on their way to the disk. After SIGKILL it is started again on the same ledger.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tests.waiting import LIMIT, pause_async

from meantime import Meantime, NoticeRate, Settings, Shell, Watch
from meantime.kernel.notice_sources import SourceKind, parse_notice_id
from meantime.runners.watch import file_threads
from meantime.stores.sqlite.store import SqliteStore

from . import watch_plants

EACH = Settings(notices=NoticeRate(seconds=0.0, per_minute=1_000_000), reconcile_every=0.5)
LEDGER, STOP, FILE = "ledger.db", "stop", "lines"
WATCHES = ("of_log", "of_file")
PRINTS = """
import os, random, sys, time
folder, seed = sys.argv[1], int(sys.argv[2])
rng = random.Random(seed)
lines = os.open(folder + "/lines", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
number = 0
while not os.path.exists(folder + "/stop") and number < 20_000:
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        number += 1
        text = b"ERROR %d\\n" % number
        os.write(1, text)
        os.write(lines, text)
    time.sleep(rng.random() * 0.006)
os.write(1, b"END\\n")
os.write(lines, b"END\\n")
"""


@asynccontextmanager
async def opened(ledger: Path, settings: Settings = EACH) -> AsyncIterator[Meantime]:
    """A busy machine is not taken for a file system that does not answer."""
    with mock.patch.object(file_threads, "PATIENCE", LIMIT):
        async with Meantime.open(ledger, settings=settings) as mt:
            yield mt


async def live(folder: Path, seed: int, rng: random.Random) -> None:
    async with opened(folder / LEDGER) as mt:
        thread = mt.thread("a")
        known = {task.id for task in await thread.list(history=True)}
        if "printer" not in known:
            command = [sys.executable, "-c", PRINTS, str(folder), str(seed)]
            await thread.start(Shell(command), id="printer", notify=False)
        if "of_log" not in known:
            await thread.start(Watch(log="printer", match="^ERROR", until="^END"), id="of_log")
        if "of_file" not in known:
            await thread.start(Watch(file=folder / FILE, match="^ERROR", until="^END"), id="of_file")
        async for _ in thread.wakeups():
            await take(mt)
            await pause_async(rng.random() * 0.02, "a turn takes a moment")


async def take(mt: Meantime) -> int:
    """One turn: what it is told goes into the transcript in one transaction with the ack."""
    thread = mt.thread("a")
    async with thread.turn() as turn:
        for notice in turn.notices:
            if notice.body is not None:
                line = f"{notice.body.count}|{notice.body.first or notice.text}|{notice.text}"
                thread.transcript.add(notice.id, line)
            else:
                thread.transcript.add(notice.id, notice.text)
        if turn.notices:
            await turn.ack(transcript=thread.transcript)
        return len(turn.notices)


async def recover(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """All that the conversation was told in the end of each watch: id of the notice and text."""
    (folder / STOP).touch()
    async with opened(folder / LEDGER) as mt, asyncio.timeout(LIMIT):
        thread = mt.thread("a")
        known = [task.id for task in await thread.list(history=True)]
        await thread.wait(*known)
        while await take(mt):
            pass
        entries = await thread.transcript.entries()
    told: dict[str, list[tuple[str, str]]] = {id: [] for id in known if id in WATCHES}
    for entry in entries:
        ref = parse_notice_id(entry.notice or "")
        if ref is not None and ref.of in told:
            kind = "event" if ref.kind is SourceKind.EVENT else "ending"
            told[ref.of].append((kind, entry.message.text))
    return told


def kill_soon_after(commits: int, seconds: float) -> None:
    """A moment after so many commits that move a cursor."""
    commit = SqliteStore.commit
    left = commits

    def counted(self: Any, change: Any) -> Any:
        nonlocal left
        if change.task.run.cursor is not None and change.task.id in WATCHES:
            left -= 1
            if left == 0:
                threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        return commit(self, change)

    SqliteStore.commit = counted  # type: ignore[method-assign]


def main() -> None:
    folder, seed, *plant = sys.argv[1:]
    if plant:
        getattr(watch_plants, plant[0])()
    rng = random.Random(int(seed))
    kill_soon_after(rng.randrange(1, 40), rng.random() * 0.006)
    threading.Timer(LIMIT, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    asyncio.run(live(Path(folder), int(seed), rng))


if __name__ == "__main__":
    main()
