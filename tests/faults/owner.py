"""An owner of commands, to be killed while they run; the next one takes them up.

    python -m tests.faults.owner story|load|reopen <folder> [seed] [plant]

What was promised is written outside (`works.say`), and what is expected of each command (`expect.jsonl`).
Every command writes its pid and its id into `starts` when it begins, and prints numbered lines.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shlex
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import LIMIT, pause_async, until_async

from meantime import Meantime, MeantimeError, Settings, Shell, Task
from meantime.kernel.limits import Limits
from meantime.kernel.work import Orderable

from . import works

SETTINGS = Settings(
    limits=Limits(per_thread=3, total=20, per_kind={}),
    stop_grace=0.5,
    stop_deadline=LIMIT,
    reconcile_every=0.5,
)
OPEN = ("queued", "running", "waiting", "cancelling", "notices.unread", "notices.leased", "notices.parked")
THREADS = "ab"
# Lines on both streams, a pause after each; some wait for the gate at the end; then the exit code.
SCRIPT = (
    "printf '%s %s\\n' $$ {id} >>{folder}/starts; i=0; while [ $i -lt {lines} ]; do echo out $i; "
    "echo err $i >&2; i=$((i+1)); {pause}; done; {gate}; echo out $$; exit {code}"
)
GATE = "while [ ! -e {folder}/gate ] && [ $i -lt 2000 ]; do sleep 0.02; i=$((i+1)); done"


class Expected(NamedTuple):
    id: str
    thread: str
    lines: int
    code: int
    cancelled: bool


class Owner:
    """Commands; what other work needs is in a class of its own (`toolowner`)."""

    gate = "gate"

    def __init__(self, folder: Path, seed: int) -> None:
        works.open_ledger(folder)
        self.folder = folder
        self.rng = random.Random(seed)
        self.born = len(list(folder.glob("life.*")))
        (folder / f"life.{self.born}").write_text(str(os.getpid()))
        self.count = 0

    async def open(self) -> None:
        self.meantime = await Meantime.open(self.folder / "ledger.db", settings=SETTINGS)

    async def accept(self, thread: str, task: str, work: Orderable) -> None:
        works.say("attempt", thread, f"{task}.1")
        await self.meantime.thread(thread).start(work, id=task)
        works.say("accepted", thread, f"{task}.1")

    def new_task(self, thread: str) -> str:
        self.count += 1
        return f"{thread}-{self.born}-{self.count}"

    async def start(
        self, thread: str, *, lines: int = 3, code: int = 0, pause: float = 0.0, gated: bool = False,
        cancelled: bool = False,
    ) -> str:  # fmt: skip
        task = self.new_task(thread)
        folder = shlex.quote(str(self.folder))
        script = SCRIPT.format(
            id=f"{task}.1", folder=folder, lines=lines, code=code, pause=f"sleep {pause}" if pause else ":",
            gate=GATE.format(folder=folder) if gated else ":",
        )  # fmt: skip
        with (self.folder / "expect.jsonl").open("a") as file:
            file.write(json.dumps(Expected(f"{task}.1", thread, lines, code, cancelled)) + "\n")
        await self.accept(thread, task, Shell(script))
        return task

    async def cancel(self, thread: str, task: str) -> None:
        try:
            await self.meantime.thread(thread).cancel(task)
        except MeantimeError:
            return  # it was over before

    async def tell(self, thread: str) -> None:
        home = self.meantime.thread(thread)
        async with home.turn() as turn:
            if turn.notices:
                transcript = home.transcript
                for notice in turn.notices:
                    transcript.add(notice.id, f"{notice.id} {notice.task.status}")
                for id in (await turn.ack(transcript=transcript)).told:
                    works.say("acked", thread, id)

    # -- lives

    async def story(self) -> None:
        """Start, queue, cancel, be told: once each, for a kill at every system call."""
        await self.open()
        await self.meantime.set_limits(per_thread=2)
        first = await self.start("a", lines=20)
        long = await self.start("a", gated=True, cancelled=True)
        queued = await self.start("a", code=3)
        await self.meantime.thread("a").wait(first, timeout=LIMIT)
        await self.cancel("a", long)
        await self.meantime.thread("a").wait(queued, long, timeout=LIMIT)
        await self.tell("a")
        await self.meantime.close()

    async def load(self) -> None:
        """Until somebody kills it."""
        await self.open()
        await asyncio.gather(*(work(thread) for thread in THREADS for work in (self.start_on, self._tell_on)))

    async def start_on(self, thread: str) -> None:
        rng = self.rng
        while self.count < 40:
            kind = rng.choice(["soon", "soon", "lines", "lasts", "lasts", "cancelled"])
            code = rng.choice([0, 0, 1, 7, 255])
            if kind == "soon":
                await self.start(thread, code=code)
            elif kind == "lines":
                await self.start(thread, lines=rng.randrange(20, 60), code=code, pause=0.01)
            elif kind == "lasts":
                await self.start(thread, lines=5, code=code, gated=True)
            else:
                task = await self.start(thread, gated=True, cancelled=True)
                await pause_async(rng.random() * 0.1, "it has begun, or not")
                await self.cancel(thread, task)
            await pause_async(rng.random() * 0.05, "a paced load")
        await asyncio.Event().wait()

    async def _tell_on(self, thread: str) -> None:
        async for _ in self.meantime.thread(thread).wakeups():
            await self.tell(thread)

    async def reopen(self) -> None:
        """Takes up what a former life left, lets it come to its end, and writes down what it says."""
        await self.open()
        (self.folder / self.gate).touch()
        await until_async(self._is_out, "everything is told", self.meantime.stats)
        with (self.folder / "ended.jsonl").open("w") as file:
            for thread in THREADS:
                for task in await self.meantime.list("all", thread=thread, limit=1_000):
                    file.write(json.dumps(await self.seen(task)) + "\n")
        await self.meantime.close()

    async def _is_out(self) -> bool:
        await self.hurry()
        for thread in THREADS:
            await self.tell(thread)
        counts = await self.meantime.stats()
        return not any(counts.get(name) for name in OPEN)

    async def hurry(self) -> None:
        """Commands end by themselves."""

    async def seen(self, task: Task) -> dict[str, Any]:
        log = self.meantime.log(task.id)
        texts = {stream: (await log.read(stream=stream)).text for stream in ("stdout", "stderr", "both")}  # type: ignore[arg-type]
        outcome = task.outcome
        return {
            "id": f"{task.id}.{task.run.number}",
            "status": str(task.status),
            "code": getattr(outcome, "exit_code", None),
            "outcome": repr(outcome)[:500],
            **texts,
        }


def live(owner: type[Owner]) -> None:
    works.watch()
    if len(sys.argv) > 4:
        from . import shell_plants

        getattr(shell_plants, sys.argv[4])()
    one = owner(Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    os.write(1, b"begin\n")
    asyncio.run(getattr(one, sys.argv[1])())
    os.write(1, b"done\n")


if __name__ == "__main__":
    live(Owner)
