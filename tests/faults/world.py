"""A runtime with everything around it in our hands: gated work, a virtual clock, an outside ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from meantime import Agent, Meantime, MeantimeError, Refused, Settings, Thread
from meantime.kernel.lifecycle import ACTIVE
from meantime.kernel.limits import Limits
from meantime.kernel.model import Task
from meantime.kernel.notice_sources import notice_id
from meantime.kernel.notices import Notice
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import jsonable
from meantime.ports.runner import Abilities, Assignment, Context
from meantime.ports.store import Store

from .clock import FaultClock
from .judge import Fact, Told, Verdict, judge

LIMITS = Limits(per_thread=4, total=8, per_kind={})


class GateRunner:
    """Work that does nothing until it is let go; what was let go before it began is let go at once."""

    kind = "agent"
    abilities = Abilities(resume=True)

    def __init__(self, ledger: list[Fact]) -> None:
        self._ledger = ledger
        self.cut = False  # the process is gone, and even stubborn work with it
        self.gates: dict[str, asyncio.Future[bool]] = {}
        self.orders: dict[str, bool] = {}  # how each run is to end, once that is decided

    def check(self, task: Task, assignment: Assignment) -> None:
        """Anything can run here."""

    def can_run(self, task: Task) -> bool:
        return True

    async def exists(self, task: Task) -> bool:
        return True

    async def run(self, assignment: Assignment, context: Context) -> Report:
        task = assignment.task
        id = notice_id(task.id, task.run.number)
        self._ledger.append(Fact("ran", task.thread, id))
        gate = self.gates[id] = asyncio.get_running_loop().create_future()
        if id in self.orders:
            gate.set_result(self.orders[id])
        stubborn = bool((task.work.input or {}).get("stubborn"))
        while True:
            try:
                good = await asyncio.shield(gate) if stubborn else await gate
                break
            except asyncio.CancelledError:
                if not stubborn or self.cut:
                    raise
        if not good:
            raise ValueError("it failed, as it was told to")
        return Report(result=jsonable(id), session=f"s_{task.id}")

    def let_go(self, id: str, good: bool) -> None:
        self.orders.setdefault(id, good)
        gate = self.gates.get(id)
        if gate is not None and not gate.done():
            gate.set_result(self.orders[id])


class World:
    def __init__(self, make_store: Callable[[], Store], clock: FaultClock, **settings: Any) -> None:
        self.make_store = make_store
        self.clock = clock
        self.settings = Settings(**{"limits": LIMITS, **settings})
        self.ledger: list[Fact] = []
        self.runner = GateRunner(self.ledger)
        self.active: dict[str, str] = {}  # notice id -> thread, of what was asked for and not seen ended
        self.over: dict[str, str] = {}  # the same, of what was seen ended
        self.acked: set[str] = set()
        self.retries: dict[str, str] = {}
        self.threads: list[str] = []
        self._count = 0

    async def open(self) -> None:
        self.runner = GateRunner(self.ledger)
        self.store: Any = self.make_store()
        self.meantime = await Meantime.open(
            ":none:", store=self.store, clock=self.clock, runners=[self.runner], settings=self.settings
        )
        await self._forget_unborn()
        await self.observe()

    async def _forget_unborn(self) -> None:
        """What was asked for in a former life and is not there: if it was accepted, the judge will say so."""
        for id, thread in list(self.active.items()):
            found = await self.meantime.list("all", thread=thread, limit=1_000)
            if id not in {notice_id(task.id, task.run.number) for task in found}:
                del self.active[id]

    def say(self, what: str, thread: str, id: str, note: str = "") -> None:
        self.ledger.append(Fact(what, thread, id, note))

    def thread(self, name: str) -> Thread:
        if name not in self.threads:
            self.threads.append(name)
        return self.meantime.thread(name)

    # -- asking

    async def start(self, thread: str, *, retry: str = "", stubborn: bool = False, **options: Any) -> str:
        self._count += 1
        task = f"{thread}-{self._count}"
        self.retries[task] = retry
        work = Agent("gate", "go", stubborn=stubborn)
        return await self._ask(
            thread, f"{task}.1", retry, self.thread(thread).start(work, id=task, retry=retry, **options)
        )

    async def resume(self, id: str) -> str:
        """The next run of the task; while that is on its way, a second resume must be refused."""
        task, _, _ = id.rpartition(".")
        runs = [int(known.rpartition(".")[2]) for known in self.over if known.rpartition(".")[0] == task]
        busy = any(known.rpartition(".")[0] == task for known in self.active)
        resuming = self.thread(self.over[id]).resume(task, "go on")
        if busy:
            await resuming
            raise AssertionError(f"{task} was resumed twice at once")
        return await self._ask(self.over[id], f"{task}.{max(runs) + 1}", self.retries.get(task, ""), resuming)

    async def _ask(self, thread: str, id: str, note: str, asking: Any) -> str:
        self.say("attempt", thread, id, note)
        self.active[id] = thread
        try:
            await asking
        except Refused:
            self.say("refused", thread, id)
            self.active.pop(id, None)
            raise
        self.say("accepted", thread, id)
        return id

    def finish(self, id: str, good: bool = True) -> None:
        self.say("finishing", self.active.get(id, ""), id)
        self.runner.let_go(id, good)

    async def cancel(self, id: str, *, wait: bool = False) -> None:
        thread = self.active[id]
        self.say("finishing", thread, id)
        await self.thread(thread).cancel(id.rpartition(".")[0], wait=wait)

    # -- telling: a class A host, with the transcript in our own store

    async def turn(
        self, thread: str, *, limit: int = 100, ack: int | None = None, read: str = "", fail: bool = False,
        boundary: bool = False,
    ) -> Sequence[Notice]:  # fmt: skip
        """Leases, adds, acks. `ack` only the first so many; `read` an ending; or `fail` before the ack."""
        home = self.thread(thread)
        transcript = home.transcript
        async with home.turn(limit=limit) as turn:
            shown = await self._read(turn, transcript, thread, read) if read else ""
            if boundary:
                await turn.boundary()
            chosen = turn.notices if ack is None else turn.notices[:ack]
            for notice in chosen:
                transcript.add(notice.id, line(notice.id, notice.task.status))
            if fail:
                raise Failure
            names = [notice.id for notice in chosen] + ([shown] if shown else [])
            if names:
                names = [] if ack is None else names + names[:1]  # a host may name one twice
                settled = await turn.ack(*names, transcript=transcript)
                self._acked(thread, settled.told)
            return turn.notices

    async def _read(self, turn: Any, transcript: Any, thread: str, id: str) -> str:
        """The notice of the ending that the agent has before its eyes now. There is none while a later run of
        the task goes on, and a host that acknowledged the earlier one would lose it by its own fault."""
        output = await turn.output(id.rpartition(".")[0])
        seen = notice_id(output.task.id, output.task.run.number)
        self.say("read", thread, seen)
        if not output.task.ended:
            return ""
        if seen not in self.acked:
            transcript.add(seen, line(seen, output.task.status))
        return seen

    def _acked(self, thread: str, told: Sequence[str]) -> None:
        for id in told:
            self.say("acked", thread, id)
            self.acked.add(id)

    # -- looking

    async def observe(self) -> None:
        """Writes down every ending that can be seen now. What nobody knows of was never accepted."""
        for id, thread in list(self.active.items()):
            task_id, _, run = id.rpartition(".")
            try:
                task = await self.thread(thread).get(task_id)
            except MeantimeError:
                continue
            if task.ended and task.run.number == int(run):
                self.say("ended", thread, id, task.status)
                self.over[id] = thread
                self.active.pop(id, None)

    def over_tasks(self) -> set[str]:
        return {id.rpartition(".")[0] for id in self.over}

    async def park_report(self) -> None:
        for notice in await self.meantime.notices("parked"):
            self.say("parked", notice.thread, notice.id)

    async def drain(self, settle: Callable[[], Any]) -> Verdict:
        """Lets everything go, tells everything, and judges."""
        for _ in range(200):
            for id in list(self.active):
                self.finish(id)
            await settle()
            await self.observe()
            await self.park_report()
            for thread in self.threads:
                await self.thread(thread).unpark()
                await self.turn(thread)
            if not await self.meantime.notices() and not await self.meantime.list(ACTIVE):
                return judge(self.ledger, await self.transcripts())
        return judge(self.ledger, await self.transcripts())

    async def transcripts(self) -> dict[str, list[Told]]:
        found: dict[str, list[Told]] = {}
        for thread in self.threads:
            entries = await self.thread(thread).transcript.entries()
            found[thread] = [told(entry.message.text) for entry in entries]
        return found


class Failure(Exception):
    """The host's own failure, inside a turn."""


def line(id: str, status: str) -> str:
    return f"{id} {status}"


def told(text: str) -> Told:
    return Told(*text.split(" "))
