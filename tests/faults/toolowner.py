"""An owner of MCP calls, to be killed while they run; the next one takes up what can be.

    python -m tests.faults.toolowner load|reopen <folder> [seed]

What was promised is written outside (`works.say`); the server writes down every execution itself.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import random
import sys
from contextlib import suppress
from pathlib import Path

from meantime import Meantime, MeantimeError, Settings, StdioServer, Tool
from meantime.kernel.limits import Limits

from . import works
from .owner import OPEN, THREADS, WATCHDOG

PEER = Path(__file__).parents[1] / "integrations" / "mcp" / "peers" / "scripted.py"
SETTINGS = Settings(
    limits=Limits(per_thread=6, total=20, per_kind={}), stop_grace=0.5, stop_deadline=6.0, reconcile_every=0.5
)
# How often each kind is called; `crash` takes its server with it.
KINDS = [
    "echo",
    "echo",
    "twice",
    "strangers",
    "garbage",
    "gate",
    "gate",
    "task",
    "task",
    "cancelled",
    "crash",
]


def is_modern(folder: Path) -> bool:
    return (folder / "modern").exists()


class Owner:
    def __init__(self, folder: Path, seed: int) -> None:
        works.open_ledger(folder)
        self.folder = folder
        self.rng = random.Random(seed)
        self.born = len(list(folder.glob("life.*")))
        (folder / f"life.{self.born}").write_text(str(os.getpid()))
        self.count = 0

    async def open(self) -> None:
        era = ["modern"] if is_modern(self.folder) else []
        server = StdioServer(command=[sys.executable, str(PEER), "clings", str(self.folder / "peer"), *era])
        self.meantime = await Meantime.open(
            self.folder / "ledger.db", settings=SETTINGS, servers={"s": server}
        )

    async def start(self, thread: str, kind: str) -> str:
        self.count += 1
        task = f"{thread}-{self.born}-{self.count}"
        mark = f"{task}.1"
        tool = {"cancelled": "hang", "task": "task" if is_modern(self.folder) else "task_of_2025"}.get(
            kind, kind
        )
        work = Tool(f"s/{tool}", {"mark": mark, "text": mark, "id": f"of-{mark}"})
        works.say("attempt", thread, mark)
        await self.meantime.thread(thread).start(work, id=task)
        works.say("accepted", thread, mark)
        return task

    async def tell(self, thread: str) -> None:
        home = self.meantime.thread(thread)
        async with home.turn() as turn:
            if turn.notices:
                transcript = home.transcript
                for notice in turn.notices:
                    transcript.add(notice.id, f"{notice.id} {notice.task.status}")
                for id in (await turn.ack(transcript=transcript)).told:
                    works.say("acked", thread, id)

    async def load(self) -> None:
        """Until somebody kills it."""
        await self.open()
        await asyncio.gather(*(self._start_on(thread) for thread in THREADS), self._tell_on())

    async def _start_on(self, thread: str) -> None:
        while self.count < 60:
            kind = self.rng.choice(KINDS)
            task = await self.start(thread, kind)
            await asyncio.sleep(self.rng.random() * 0.05)
            if kind == "cancelled":
                with suppress(MeantimeError):  # it was over before
                    await self.meantime.thread(thread).cancel(task)
        await asyncio.Event().wait()

    async def _tell_on(self) -> None:
        while True:
            for thread in THREADS:
                await self.tell(thread)
            await asyncio.sleep(0.02)

    async def reopen(self) -> None:
        await self.open()
        (self.folder / "peer" / "gate").touch()
        while True:
            for thread in THREADS:
                await self.tell(thread)
            counts = await self.meantime.stats()
            if not any(counts.get(name) for name in OPEN):
                break
            for task in await self.meantime.list(["running"]):  # queued behind the kills: nobody ends it
                if task.work.name == "s/hang":
                    await self.meantime.cancel(task.id)
            await asyncio.sleep(0.01)
        with (self.folder / "ended.jsonl").open("w") as file:
            for task in await self.meantime.list("all", limit=1_000):
                outcome = task.outcome
                fields = {
                    "id": f"{task.id}.{task.run.number}",
                    "kind": task.work.name.partition("/")[2],
                    "status": str(task.status),
                    "result": getattr(outcome, "result", None),
                    "session": task.session,
                    "outcome": repr(outcome)[:500],
                }
                file.write(json.dumps(fields) + "\n")
        await self.meantime.close()


if __name__ == "__main__":
    faulthandler.dump_traceback_later(WATCHDOG, exit=True)
    owner = Owner(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    os.write(1, b"begin\n")
    asyncio.run(getattr(owner, sys.argv[1])())
    os.write(1, b"done\n")
