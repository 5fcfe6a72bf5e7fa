"""An owner of agents, to be killed while they start, ask, are answered, end and are resumed.

    python -m tests.faults.agentwork story|reopen <folder>

Its agent keeps its sessions in files of its own. `ran` is said when the agent gets a prompt, so an agent
that is told the same twice is seen; the thread is told by way of a file that is looked into first.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.runtimes import runtime_of
from tests.waiting import until_async

from meantime import Agent, Meantime, MeantimeError, Refused, Settings, Task
from meantime.kernel.questions import PERMISSION, Question
from meantime.ports.session import AgentSettings
from meantime.runners.agent.agent_run import HostedAgent
from meantime.testing.scripted_host import ScriptedHost

from . import agent_plants, works
from .victim import File

THREAD = "b"
OPEN = ("queued", "running", "waiting", "cancelling", "notices.unread", "notices.leased", "notices.parked")
GATE = asyncio.Event()


async def turn(prompt, hearer) -> str:
    task, run, what = prompt.key.split(".", 2)
    if what == "prompt":
        works.say("ran", THREAD, f"{task}.{run}")
    elif what.startswith("answer"):
        works.say("heard", THREAD, f"{task}.{run}.answer")
    if "ask" in prompt.text and what == "prompt":
        question = Question(id="p1", text="May I?", kind="permission", choices=PERMISSION, subject="bash")
        reply = await hearer.ask(question)
        works.say("heard", THREAD, f"{task}.{run}.answer")
        return f"allowed: {reply.allows}"
    if "wait" in prompt.text:
        await GATE.wait()
    return f"done: {task}.{run}"


class Owner:
    def __init__(self, folder: Path) -> None:
        works.open_ledger(folder)
        self.folder = folder
        self.file = File(folder / f"{THREAD}.jsonl")

    async def open(self) -> None:
        host = ScriptedHost(turn, kept=True)
        agents = {"helper": HostedAgent(AgentSettings(runner="python"), host)}
        settings = Settings(stop_grace=0.5, reconcile_every=0.5, progress_every=0.01)
        self.mt = await Meantime.open(self.folder / "ledger.db", agents=agents, settings=settings)
        self.thread = self.mt.thread(THREAD)

    async def _promised(self, id: str, asked: Awaitable[object]) -> None:
        works.say("attempt", THREAD, id)
        await asked
        works.say("accepted", THREAD, id)

    async def start(self, id: str, prompt: str) -> None:
        await self._promised(f"{id}.1", self.thread.start(Agent("helper", prompt), id=id))

    async def until(self, id: str, condition: Callable[[Task], object], what: str) -> None:
        async def holds() -> object:
            return condition(await self.thread.get(id))

        await until_async(holds, f"{id} {what}")

    async def see_end(self, id: str, run: int = 1) -> None:
        await self.until(id, lambda task: task.ended and task.run.number == run, f"has ended its run {run}")
        works.say("ended", THREAD, f"{id}.{run}", (await self.thread.get(id)).status)

    async def answer(self, id: str) -> None:
        await self.until(id, lambda task: task.question, "asks")
        await self.mt.answer(id, "allow")
        works.say("answered", THREAD, f"{id}.1.answer")

    async def tell(self) -> None:
        async with self.thread.turn() as told:
            fresh = [notice for notice in told.notices if not await self.file.has(THREAD, notice.id)]
            await self.file.deliver(THREAD, fresh)
            for id in (await told.ack()).told:
                works.say("acked", THREAD, id)

    async def story(self) -> None:
        """Start, ask, answer, say more, resume: each once."""
        await self.open()
        await self.start("asks", "ask first")
        await self.start("waits", "wait for it")
        await self.answer("asks")
        await self.see_end("asks")
        await self._promised("asks.2", self.thread.resume("asks", "and more"))
        await self.see_end("asks", 2)
        await self.tell()
        await self._promised("waits.2", self.thread.send("waits", "and then this"))
        GATE.set()
        await self.see_end("waits", 2)
        await self.come_out()
        await self.mt.close()

    async def reopen(self) -> None:
        await self.open()
        GATE.set()
        await self.come_out()
        await self.mt.close()

    async def come_out(self) -> None:
        await until_async(self._is_out, "everything is told", self.mt.stats)

    async def _is_out(self) -> bool:
        for task in await self.mt.list("waiting"):
            try:
                await self.mt.answer(task.id, "allow")
            except Refused:
                continue  # it was answered before the kill
            works.say("answered", THREAD, f"{task.id}.1.answer")
        await self.tell()
        counts = await self.mt.stats()
        following = await runtime_of(self.mt).store.following()
        return not following and not any(counts.get(name) for name in OPEN)


if __name__ == "__main__":
    works.watch()
    if plant := os.environ.get(agent_plants.PLANT):
        getattr(agent_plants, plant)()
    if last := os.environ.get(agent_plants.LAST):
        agent_plants.die_after(last)
    owner = Owner(Path(sys.argv[2]))
    os.write(1, b"begin\n")
    try:
        asyncio.run(getattr(owner, sys.argv[1])())
    except MeantimeError as problem:
        sys.exit(f"{type(problem).__name__}: {problem}")
    os.write(1, b"done\n")
