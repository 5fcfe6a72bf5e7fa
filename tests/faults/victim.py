"""A program that hands work off and is told of it, to be killed or starved while it does so.

    python -m tests.faults.victim story|reopen|load <folder> [seed]

It writes down outside what it was promised (`works.say`), and keeps three conversations: `a` has its
transcript in our store (class A); `b` is a file of its own that is looked into before it is written
to (class B); `c` is such a file behind a host that we push to.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, pause_async, until_async

from meantime import (
    Call,
    Delivery,
    LeaseLost,
    LedgerError,
    Meantime,
    MeantimeError,
    Notice,
    Settings,
    Task,
    Thread,
)
from meantime import Refused as Refusal
from meantime.kernel.limits import Limits

from . import works
from .judge import Told

STARVED = 4.0  # seconds in which an ending may be recorded on a disk that fails for good
DB = "ledger.db"


def ledger(folder: Path) -> Path:
    """On a disk of its own, where there is one."""
    own = folder / "disk"
    return own / DB if own.is_dir() else folder / DB


class Hang(BaseException):
    """Nothing may hang."""


class File:
    """A conversation of the host's own: one line a message, looked into before it is written to."""

    delivery = Delivery("B", can_wake=True)

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        self.path = path

    def lines(self) -> list[Told]:
        return [Told(*json.loads(line)) for line in self.path.read_bytes().splitlines()]

    async def has(self, thread: str, notice: str) -> bool:
        return any(line.id == notice for line in self.lines())

    async def deliver(self, thread: str, notices: Sequence[Notice]) -> None:
        for notice in notices:
            os.write(self._fd, json.dumps([notice.id, notice.task.status]).encode() + b"\n")
            os.fsync(self._fd)


class Victim:
    def __init__(self, folder: Path, seed: int = 0) -> None:
        works.open_ledger(folder)
        self.folder = folder
        self.rng = random.Random(seed)
        self.files = {name: File(folder / f"{name}.jsonl") for name in "bc"}
        self.born = f"{os.getpid()}-{len(list(folder.glob('life.*')))}"
        (folder / f"life.{self.born}").touch()
        self.count = 0
        self.patience = LIMIT  # seconds for an ending; a call itself has nothing to wait for but the disk

    async def open(self) -> None:
        limits = Limits(per_thread=2, total=20, per_kind={})
        settings = Settings(  # a thread that is cancelled does not stop: it is left behind at the deadline
            limits=limits, stop_grace=0.5, stop_deadline=2.0, reconcile_every=0.5, progress_every=0.01
        )
        for tries in reversed(range(50)):
            try:
                self.meantime = await Meantime.open(ledger(self.folder), settings=settings)
                break
            except (LedgerError, Refusal):  # the disk is full or failing for a number of calls
                if not tries:
                    raise
        self.meantime.attach("c", self.files["c"])

    def thread(self, name: str) -> Thread:
        return self.meantime.thread(name)

    @asynccontextmanager
    async def prompt(self) -> AsyncIterator[None]:
        """What is in this block is answered, whatever the disk does; else it hangs, and that is said."""
        try:
            async with asyncio.timeout(LIMIT):
                yield
        except TimeoutError:
            raise Hang("a call was not answered") from None

    # -- asking

    async def start(self, name: str, how: str = "", *, closed: bool = True, **options: Any) -> str | None:
        self.count += 1
        task = f"{name}-{self.born}-{self.count}"
        id = f"{task}.1"
        if how == "sync":
            if closed:
                works.SYNC_GATES[id] = threading.Event()
            work = Call(works.threaded, id, name)
        else:
            if closed:
                works.GATES[id] = asyncio.Event()
            work = Call(works.gated, id, name, how)
        works.say("attempt", name, id, options.get("retry", ""))
        try:
            async with self.prompt():
                await self.thread(name).start(work, id=task, **options)
        except LedgerError:
            return None  # it may be there, or not
        except Refusal:
            works.say("refused", name, id)
            return None
        works.say("accepted", name, id)
        return id

    async def finish(self, id: str | None, *, wait: bool = True) -> None:
        if id is None:
            return
        works.let_go(id)
        if wait:
            await self.see_end(id)

    async def see_end(self, id: str | None) -> None:
        if id is not None:
            name, task = id.partition("-")[0], id.rpartition(".")[0]
            async with asyncio.timeout(self.patience):
                ended = await until_async(lambda: self._wait(name, task), "the disk can be read again")
            assert ended.ended, f"{id} is {ended.status}"
            works.say("ended", name, id, ended.status)

    async def _wait(self, name: str, task: str) -> Task | None:
        try:
            return (await self.thread(name).wait(task))[0]
        except LedgerError:
            return None

    async def cancel(self, id: str | None) -> None:
        if id is not None:
            try:
                async with asyncio.timeout(self.patience):
                    await self.thread(id.partition("-")[0]).cancel(id.rpartition(".")[0], wait=True)
            except MeantimeError:
                await self.finish(id, wait=False)
            await self.see_end(id)

    # -- telling

    async def tell(self, name: str, *, ack: bool = True) -> int:
        """Class A: one transaction. Class B: look, write, then acknowledge."""
        home = self.thread(name)
        try:
            async with self.prompt(), home.turn() as turn:
                if not ack or not turn.notices:
                    return 0
                if name == "a":
                    transcript = home.transcript
                    for notice in turn.notices:
                        transcript.add(notice.id, f"{notice.id} {notice.task.status}")
                    settled = await turn.ack(transcript=transcript)
                else:
                    file = self.files[name]
                    fresh = [notice for notice in turn.notices if not await file.has(name, notice.id)]
                    await file.deliver(name, fresh)
                    settled = await turn.ack()
                for id in settled.told:
                    works.say("acked", name, id)
                return len(settled.told)
        except (LedgerError, Refusal, LeaseLost):
            return 0

    async def story(self) -> None:
        """Every verb once, on every class of host."""
        await self.open()
        a = [await self.start("a"), await self.start("a", "sync"), await self.start("a", retry="idempotent")]
        b = [await self.start("b"), await self.start("b", "fail"), await self.start("b", "big")]
        c = [await self.start("c"), await self.start("c")]
        await self.finish(a[0])
        await self.tell("a", ack=False)
        await self.tell("a")
        await self.finish(b[0])
        await self.tell("b")
        await self.finish(c[0])
        await self.finish(a[1], wait=False)
        await self.finish(b[1])
        await self.see_end(a[1])
        await self.cancel(a[2])
        slow = await self.start("a", timeout=0.02)
        await self.see_end(slow)
        await self.tell("a")
        await self.finish(b[2])
        await self.tell("b")
        await self.cancel(c[1])
        await self.come_out()
        await self.meantime.close()

    async def starved(self) -> None:
        """The story on a disk that fails for good: it cannot come to its end, but no call may hang."""
        self.patience = STARVED
        try:
            await self.story()
        except (TimeoutError, LedgerError, Refusal) as problem:
            os.write(1, f"starved: {problem!r}\n".encode())
            os._exit(0)  # its ledger cannot be closed

    async def come_out(self) -> None:
        """Until nothing is active and everything was told; parked ones are seen, and taken up again."""
        try:
            await until_async(self._is_out, "everything is told", limit=self.patience)
        except AssertionError as problem:
            raise TimeoutError(*problem.args) from None

    async def _is_out(self) -> bool:
        with suppress(LedgerError):  # the disk fails for a while
            return await self._told_all()
        return False

    async def _told_all(self) -> bool:
        for id in [*works.GATES, *works.SYNC_GATES]:
            await self.finish(id, wait=False)
        for notice in await self.meantime.notices("parked"):
            works.say("parked", notice.thread, notice.id)
            await self.thread(notice.thread).unpark()
        for name in "ab":
            await self.tell(name)
        counts = await self.meantime.stats()
        return not any(counts.get(name) for name in OPEN)

    async def reopen(self) -> None:
        """What a restart does with what a former life left behind."""
        await self.open()
        for task in await self.meantime.list("lost", limit=1_000):
            works.say("ended", task.thread, f"{task.id}.{task.run.number}", task.status)
        await self.come_out()
        await self.meantime.close()

    async def salvage(self) -> None:
        async with Meantime.open(ledger(self.folder), salvage=True):
            return

    async def load(self) -> None:
        """Until somebody kills it: many tasks, many turns, on all three at once."""
        await self.open()
        await asyncio.gather(
            *(self._start_on(name) for name in "aabbcc"), *(self._tell_on(name) for name in "aabb")
        )

    async def _start_on(self, name: str) -> None:
        while True:
            how = self.rng.choice(["", "", "sync", "fail", "big"])
            id = await self.start(name, how, closed=self.rng.random() < 0.5)
            await pause_async(self.rng.random() * 0.02, "a paced load")
            if self.rng.random() < 0.2:
                await self.cancel(id)
            elif id is not None:
                await self.finish(id, wait=self.rng.random() < 0.5)

    async def _tell_on(self, name: str) -> None:
        async for _ in self.thread(name).wakeups():
            await self.tell(name, ack=self.rng.random() < 0.8)


OPEN = ("queued", "running", "waiting", "cancelling", "notices.unread", "notices.leased", "notices.parked")


if __name__ == "__main__":
    works.watch()
    victim = Victim(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    os.write(1, b"begin\n")
    asyncio.run(getattr(victim, sys.argv[1])())
    os.write(1, b"done\n")
