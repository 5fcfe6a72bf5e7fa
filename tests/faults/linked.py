"""A process that is connected to a daemon, hands work off and is told of it, while things go wrong.

    python -m tests.faults.linked load <folder> <name> <life> <seed> <link> <patience>

It tells two conversations, and nobody else tells them: `a<name>` has its transcript in the ledger
(class A), `b<name>` is a file that is looked into before it is written to (class B).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import random
import shlex
import sys
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, pause_async, until_async

from meantime import Call, Disconnected, LeaseLost, Meantime, NotFound, Notice, Shell, Thread

from . import link_plants, works
from .served import PLANT, Line

MOST = int(os.environ.get("FAULT_MOST", "150"))  # tasks of one process
KINDS = ["gated"] * 5 + ["quick"] * 2 + ["sync", "sync", "call", "call", "shell", "long"]
OPEN = ("queued", "running", "waiting", "cancelling", "notices.unread", "notices.leased", "notices.parked")
# A command writes down its own execution, then waits for the end of the load, some of them.
RAN = "printf '%s\\n' {fact} >>{folder}/ledger.jsonl; "
GATE = "i=0; while [ ! -e {folder}/finish ] && [ $i -lt 300 ]; do sleep 0.25; i=$((i+1)); done; "


class Conversation:
    """A file of the host's own: one line a notice."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> list[Line]:
        whole = self._path.read_bytes() if self._path.exists() else b""
        return [Line(*json.loads(line)) for line in whole.splitlines()]

    def add(self, notices: list[Notice]) -> None:
        known = {line.id for line in self.lines()}
        with self._path.open("ab") as file:
            for notice in notices:
                if notice.id not in known:
                    line = Line(notice.id, str(notice.task.status), notice.number)
                    file.write(json.dumps(line).encode() + b"\n")


class Linked:
    reconnects = LIMIT  # seconds within which a daemon must come back

    def __init__(self, folder: Path, name: str, life: str, seed: int, link: Path, patience: float) -> None:
        works.open_ledger(folder)
        self.folder = folder
        self.name = name
        self.born = f"{name}-{life}"
        self.rng = random.Random(seed)
        self.link = link
        self.patience = patience
        self.file = Conversation(folder / f"b{name}.jsonl")
        self.count = 0

    @property
    def finishing(self) -> bool:
        return (self.folder / "finish").exists()

    def thread(self, name: str) -> Thread:
        return self.meantime.thread(name)

    async def load(self) -> None:
        """Until `finish` is there; then until everything that anybody asked for is told."""
        async with Meantime.connect(self.link, start=False, patience=self.reconnects) as self.meantime:
            os.write(1, b"begin\n")
            telling = [
                asyncio.create_task(self._tell_on(name)) for name in (f"a{self.name}", f"b{self.name}")
            ]
            await asyncio.gather(*(self._start_on(name) for name in self._threads()))
            (self.folder / f"stopped.{self.name}").touch()
            await self._come_out(telling)
            for task in telling:
                task.cancel()
            await asyncio.gather(*telling, return_exceptions=True)

    def _threads(self) -> list[str]:
        """Our own, and those of the others that are there."""
        others = sorted(path.name.partition(".")[2] for path in self.folder.glob("here.*"))
        return [f"{kind}{name}" for kind in "ab" for name in others]

    # -- asking

    async def _start_on(self, thread: str) -> None:
        rng = self.rng
        while not self.finishing:
            if self.count < MOST:
                await self._one(thread, rng.choice(KINDS))
            await pause_async(rng.random() * 0.2, "a paced load")

    async def _one(self, thread: str, how: str) -> None:
        self.count += 1
        task = f"{thread}-{self.born}-{self.count}"
        id = f"{task}.1"
        if how == "call":
            await self._call(thread, task, id)
            return
        works.say("attempt", thread, id)
        await self.thread(thread).start(self._work(thread, id, how), id=task)
        works.say("accepted", thread, id)
        if how == "gated":
            await pause_async(self.rng.random() * 0.3, "work takes a moment")
            works.let_go(id)
            if self.rng.random() < 0.3:
                (ended,) = await self.thread(thread).wait(task, timeout=LIMIT)
                if ended.ended:
                    works.say("ended", thread, id, ended.status)

    def _work(self, thread: str, id: str, how: str) -> Any:
        if how in ("shell", "long"):
            folder = shlex.quote(str(self.folder))
            fact = shlex.quote(json.dumps(["ran", thread, id, ""]))
            gate = GATE.format(folder=folder) if how == "long" else ""
            return Shell(RAN.format(fact=fact, folder=folder) + gate + f"exit {self.rng.choice([0, 0, 3])}")
        if how == "sync":
            return Call(works.threaded, id, thread)
        if how == "gated":
            works.GATES[id] = asyncio.Event()
        return Call(works.gated, id, thread, self.rng.choice(["", "", "fail", "big"]))

    async def _call(self, thread: str, task: str, id: str) -> None:
        """A result or a task: what was answered must not be told, what became a task must be."""
        works.say("attempt", thread, id)
        how = self.rng.choice(["gated", "quick"])
        work = Call(works.gated, id, thread)
        if how == "gated":
            gate = works.GATES[id] = asyncio.Event()
            asyncio.get_running_loop().call_later(self.rng.random() * 0.4, gate.set)
        try:
            answer = await self.thread(thread).call(work, threshold=0.2, id=task)
        except Disconnected:
            return  # in doubt, and that was said
        works.say("accepted" if answer.mode == "background" else "refused", thread, id)

    # -- telling

    async def _tell_on(self, name: str) -> None:
        async for _ in self.thread(name).wakeups():
            await self._tell(name)

    async def _tell(self, name: str) -> None:
        """A turn whose owner was lost is over; what it held comes again."""
        with contextlib.suppress(LeaseLost, Disconnected, NotFound):
            async with self.thread(name).turn() as turn:
                if not turn.notices or self.rng.random() < 0.1:
                    return
                await pause_async(self.rng.random() * 0.05, "a connection may be cut in a turn")
                if name[0] == "a":
                    transcript = self.thread(name).transcript
                    for notice in turn.notices:
                        transcript.add(notice.id, f"{notice.id} {notice.task.status} {notice.number}")
                    settled = await turn.ack(transcript=transcript)
                else:
                    self.file.add(turn.notices)
                    settled = await turn.ack()
                for id in settled.told:
                    works.say("acked", name, id)

    async def _come_out(self, telling: list[asyncio.Task[None]]) -> None:
        async def is_out() -> bool:
            for task in telling:
                if task.done():
                    task.result()
            return await self._is_out()

        try:
            await until_async(is_out, "everything is told", self._left, limit=self.patience)
        except AssertionError as problem:
            os.write(1, f"not out: {problem}\n".encode())  # the judge says what is missing

    async def _is_out(self) -> bool:
        for gate in works.GATES.values():
            gate.set()
        names = (self.folder / "finish").read_text().split()
        if not all((self.folder / f"stopped.{name}").exists() for name in names):
            return False
        counts = await self.meantime.stats()
        return not any(counts.get(name) for name in OPEN)

    async def _left(self) -> list[str]:
        tasks = await self.meantime.list(["queued", "running", "cancelling"], limit=5)
        notices = await self.meantime.notices()
        return [f"{task.id} {task.status}" for task in tasks] + [
            f"{notice.id} {notice.state}" for notice in notices[:5]
        ]


if __name__ == "__main__":
    works.watch(10 * LIMIT)
    logging.getLogger("meantime").setLevel(logging.CRITICAL)
    link_plants.plant(os.environ.get(PLANT, ""), "client")
    _, _, place, name, life, seed, link, patience = sys.argv
    (Path(place) / f"here.{name}").touch()
    asyncio.run(Linked(Path(place), name, life, int(seed), Path(link), float(patience)).load())
    os.write(1, b"done\n")
