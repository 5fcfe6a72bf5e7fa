"""An owner of MCP calls, to be killed while they run; the next one takes up what can be.

    python -m tests.faults.toolowner load|reopen <folder> [seed]

What was promised is written outside (`works.say`); the server writes down every execution itself.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT, pause_async

from meantime import Meantime, Settings, StdioServer, Task, Tool
from meantime.kernel.limits import Limits

from .owner import Owner, live

PEER = Path(__file__).parents[1] / "integrations" / "mcp" / "peers" / "scripted.py"
SETTINGS = Settings(
    limits=Limits(per_thread=6, total=20, per_kind={}),
    stop_grace=0.5,
    stop_deadline=LIMIT,
    reconcile_every=0.5,
)
CALLS = 60  # of one life
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


class ToolOwner(Owner):
    gate = "peer/gate"

    async def open(self) -> None:
        era = ["modern"] if is_modern(self.folder) else []
        command = [sys.executable, str(PEER), "clings", str(self.folder / "peer"), *era]
        server = StdioServer(command=command, start_timeout=LIMIT)
        self.meantime = await Meantime.open(
            self.folder / "ledger.db", settings=SETTINGS, servers={"s": server}
        )

    async def call(self, thread: str, kind: str) -> str:
        task = self.new_task(thread)
        of_era = {"cancelled": "hang", "task": "task" if is_modern(self.folder) else "task_of_2025"}
        mark = f"{task}.1"
        work = Tool(f"s/{of_era.get(kind, kind)}", {"mark": mark, "text": mark, "id": f"of-{mark}"})
        await self.accept(thread, task, work)
        return task

    async def start_on(self, thread: str) -> None:
        while self.count < CALLS:
            kind = self.rng.choice(KINDS)
            task = await self.call(thread, kind)
            await pause_async(self.rng.random() * 0.05, "a paced load")
            if kind == "cancelled":
                await self.cancel(thread, task)
        await asyncio.Event().wait()

    async def hurry(self) -> None:
        for task in await self.meantime.list(["running"]):  # queued behind the kills: nobody ends it
            if task.work.name == "s/hang":
                await self.meantime.cancel(task.id)

    async def seen(self, task: Task) -> dict[str, Any]:
        return {
            "id": f"{task.id}.{task.run.number}",
            "kind": task.work.name.partition("/")[2],
            "status": str(task.status),
            "result": getattr(task.outcome, "result", None),
            "session": task.session,
            "outcome": repr(task.outcome)[:500],
        }


if __name__ == "__main__":
    live(ToolOwner)
