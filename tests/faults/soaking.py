"""A process that is connected to a daemon and hands mixed work off at a steady rate, for minutes.

    python -m tests.faults.soaking load <folder> <name> <life> <seed> <link> <patience> <rate>

<rate> is in tasks a second; 0 is as many as possible. It tells its conversations as `linked` does, and is
gone when the process that started it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shlex
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, pause_async

from meantime import Agent, Call, Disconnected, NotFound, Notice, Shell
from meantime.integrations.loops.loop_conversation import Conversation as Talk

from . import works
from .linked import RAN, Conversation, Linked
from .served import Line

AGENT, COMMANDS = "agent", ("shell", "nap")
KINDS = ["quick"] * 4 + ["gated"] * 3 + ["sync"] * 2 + ["call"] * 2 + ["shell", "nap", AGENT]
PARALLEL = 4  # starts at once in one conversation, where there is no rate
PENDING = 32  # starts under way in one conversation, where there is one


async def echo(talk: Talk) -> str:
    """The agent. It lives in the daemon, so its prompt says where the outside record is."""
    folder, thread, id = json.loads(talk.messages[-1].text)
    record = os.open(Path(folder) / "ledger.jsonl", os.O_WRONLY | os.O_APPEND)
    os.write(record, json.dumps(["ran", thread, id, ""]).encode() + b"\n")
    os.close(record)
    await pause_async(0.05, "an agent thinks")
    return "done"


class KnownConversation(Conversation):
    """The same file, read once: it has one writer, and becomes long."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._known = {line.id for line in self.lines()}

    def add(self, notices: list[Notice]) -> None:
        fresh = [notice for notice in notices if notice.id not in self._known]
        lines = [Line(notice.id, str(notice.task.status), notice.number) for notice in fresh]
        with self._path.open("ab") as file:
            file.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        self._known.update(notice.id for notice in fresh)


class Soaking(Linked):
    reconnects = 2 * LIMIT  # other programs may take most of the machine, for an hour

    def __init__(self, *given: Any, rate: float) -> None:
        super().__init__(*given)
        self.file = KnownConversation(self.folder / f"b{self.name}.jsonl")
        self.rate = rate
        self.parent = os.getppid()
        self.kinds = self._kinds()

    @property
    def finishing(self) -> bool:
        if os.getppid() != self.parent:
            os._exit(3)  # whoever judges is gone: its successor starts others
        return super().finishing

    async def load(self) -> None:
        """A daemon that is short of CPU may welcome nobody for a while, which is noted, and tried again."""
        end = time.monotonic() + self.reconnects
        while True:
            try:
                return await super().load()
            except Disconnected:
                if hasattr(self, "meantime") or time.monotonic() > end:
                    raise
                works.say("unanswered", "", self.born)

    def _kinds(self) -> Iterator[str]:
        """In a random order, in which even a short load has all of them."""
        while True:
            yield from self.rng.sample(KINDS, len(KINDS))

    async def _start_on(self, thread: str) -> None:
        await (self._pace(thread) if self.rate else self._flood(thread))

    async def _flood(self, thread: str) -> None:
        async def on() -> None:
            while not self.finishing:
                await self._one(thread, next(self.kinds))

        await asyncio.gather(*(on() for _ in range(PARALLEL)))

    async def _pace(self, thread: str) -> None:
        """At random moments of that rate; those are left out at which too many starts are under way."""
        rate = self.rate / len(self._threads())
        under_way: set[asyncio.Task[None]] = set()
        moment = time.monotonic()
        while not self.finishing:
            moment += self.rng.expovariate(rate)
            await pause_async(min(max(0.0, moment - time.monotonic()), 1.0), "a paced load")
            if moment > time.monotonic() or len(under_way) >= PENDING:
                moment = max(moment, time.monotonic())
                continue
            one = asyncio.create_task(self._one(thread, next(self.kinds)))
            under_way.add(one)
            one.add_done_callback(under_way.discard)
        await asyncio.gather(*under_way)

    async def _one(self, thread: str, how: str) -> None:
        self.count += 1
        task = f"{thread}-{self.born}-{self.count}"
        id = f"{task}.1"
        if how == "call":
            await self._call(thread, task, id)
            works.GATES.pop(id, None)
            return
        works.say("attempt", thread, id, how)
        await self.thread(thread).start(self._work(thread, id, how), id=task)
        works.say("accepted", thread, id)
        if how == "gated":
            await pause_async(self.rng.random() * 0.3, "work takes a moment")
            works.GATES.pop(id).set()
            if self.rng.random() < 0.3:
                await self._see_end(thread, task, id)

    async def _see_end(self, thread: str, task: str, id: str) -> None:
        with contextlib.suppress(NotFound):  # it was told and forgotten before we asked
            (ended,) = await self.thread(thread).wait(task, timeout=LIMIT)
            if ended.ended:
                works.say("ended", thread, id, ended.status)

    def _work(self, thread: str, id: str, how: str) -> Any:
        if how == AGENT:
            return Agent("echo", json.dumps([str(self.folder), thread, id]))
        if how in COMMANDS:
            fact = shlex.quote(json.dumps(["ran", thread, id, ""]))
            nap = f"sleep {self.rng.uniform(0.5, 3):.1f}; " if how == "nap" else ""
            said = RAN.format(fact=fact, folder=shlex.quote(str(self.folder)))
            return Shell(said + nap + f"exit {self.rng.choice([0, 0, 3])}")
        if how == "quick":
            return Call(works.gated, id, thread, self.rng.choice(["", "", "", "fail", "big"]))
        return super()._work(thread, id, how)


if __name__ == "__main__":
    logging.getLogger("meantime").setLevel(logging.CRITICAL)
    works.SYNCED = False
    _, _, place, name, life, seed, link, patience, rate = sys.argv
    (Path(place) / f"here.{name}").touch()
    client = Soaking(Path(place), name, life, int(seed), Path(link), float(patience), rate=float(rate))
    asyncio.run(client.load())
    os.write(1, b"done\n")
