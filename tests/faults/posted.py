"""An owner that is used over HTTP alone, to be killed at any system call of any write.

    python -m tests.faults.posted serve <folder>

It ends when its stdin is closed. In its first life it also waits for a call, which can be promoted.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT

from meantime import Meantime, Settings, Shell, background
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import jsonable
from meantime.kernel.questions import Question
from meantime.ports.runner import Abilities, Assignment, Context

from . import works

THREAD = "b"
CALL = "b-call"
SETTINGS = Settings(stop_grace=0.3, stop_deadline=LIMIT, reconcile_every=0.5, parks_after=1)


@background
async def noted(id: str) -> str:
    works.say("ran", THREAD, id)
    return id


class AgentRunner:
    kind = "agent"
    abilities = Abilities(resume=True)

    def check(self, task: Any, assignment: Assignment) -> None:
        """Anything can run here."""

    def can_run(self, task: Any) -> bool:
        return True

    async def exists(self, task: Any) -> bool:
        return True

    async def run(self, assignment: Assignment, context: Context) -> Report:
        task = assignment.task
        works.say("ran", task.thread, f"{task.id}.{task.run.number}")
        if task.work.input["prompt"] == "ask":
            await context.ask(Question(id="q-1", text="May I?"))
        return Report(result=jsonable("done"), session=f"s_{task.id}")


async def main(folder: Path) -> None:
    works.open_ledger(folder)
    opening = Meantime.open(folder / "ledger.db", settings=SETTINGS, runners=[AgentRunner()])
    async with opening as mt, mt.serve(socket=folder / "http.sock", tcp=False):
        calling = asyncio.create_task(_call(mt, folder))
        await asyncio.to_thread(sys.stdin.buffer.read)
    await asyncio.gather(calling, return_exceptions=True)


async def _call(mt: Meantime, folder: Path) -> None:
    """One that nobody promotes leaves nothing behind."""
    if not (folder / "called").exists():
        (folder / "called").touch()
        works.say("attempt", THREAD, f"{CALL}.1")
        said = works.saying(folder, "ran", THREAD, f"{CALL}.1")
        await mt.thread(THREAD).call(Shell(f"{said}; sleep 600"), id=CALL)


if __name__ == "__main__":
    works.watch()
    os.write(1, b"begin\n")
    asyncio.run(main(Path(sys.argv[2])))
    os.write(1, b"done\n")
