"""A thread as a conversation with an agent: its first message starts a task, and each later one is another
run of that task, in the same session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from meantime.kernel.errors import NotFound, NotResumable, Refused
from meantime.kernel.ids import ID
from meantime.kernel.lifecycle import Status
from meantime.kernel.lines import Line
from meantime.kernel.model import Json, Task
from meantime.kernel.work import Agent
from meantime.ports.owner import Owner
from meantime.ports.store import Query, Sort
from meantime.ports.tasks import Options, Tasks

from .numbered_run import NumberedRun, split_run_id

Busy: TypeAlias = Literal["enqueue", "interrupt", "reject"]
STOP_SECONDS = 30.0  # that a run may take to stop, before the message that interrupts it is refused
ATTEMPTS = 3  # a run may end while a message is on its way to it
SCANNED = 1_000  # tasks of a thread that are looked at for its runs
PAGE = 200
LINES = 200  # of a conversation whose session is gone, for the task that goes on from it
# It ended, was cancelled or was resumed by another program while the message was on its way.
_IN_THIS_MOMENT = ("ended", "still_active", "being_resumed", "cancelling")


class AgentMessage(NamedTuple):
    """A message to an agent."""

    text: str
    context: tuple[Line, ...] = ()  # a conversation that it goes on from; for the first message only
    meta: Mapping[str, Json] = MappingProxyType({})  # kept with the task


class AgentConversations:
    def __init__(self, tasks: Tasks, owner: Owner) -> None:
        self._tasks = tasks
        self._owner = owner
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def check_agent(self, name: str) -> str:
        known = [agent.name for agent in self._owner.about().agents]
        if name not in known:
            there = f"There are: {', '.join(known[:50])}." if known else "This server has no agents."
            raise NotFound(f"There is no agent {name[:64]!r}.", hint=there, code="unknown_agent")
        return name

    async def say(self, thread: str, agent: str, said: AgentMessage, busy: Busy = "enqueue") -> NumberedRun:
        """The run that the message began, is queued for, or was told in the middle of. Messages to one thread
        come one after the other, so that two at once do not begin two conversations."""
        lock = self._locks.setdefault(thread, asyncio.Lock())
        async with lock:
            for _ in range(ATTEMPTS - 1):
                try:
                    return await self._say(thread, agent, said, busy)
                except Refused as problem:
                    if problem.code not in _IN_THIS_MOMENT:
                        raise
            return await self._say(thread, agent, said, busy)

    async def _say(self, thread: str, agent: str, said: AgentMessage, busy: Busy) -> NumberedRun:
        task = await self.newest(thread, agent)
        if task is None:
            return await self._start(thread, agent, said)
        if not task.ended and (busy == "interrupt" or task.status is Status.WAITING):
            task = await self._stopped(task)
        if task.ended and not task.follow_up:
            return await self._resume(task, said)
        if task.ended:  # its follow-up is about to begin
            text = f"The thread {thread} has a message already, which comes next."
            raise Refused(text, code="follow_up_queued", hint="Send it again when that run has begun.")
        if busy == "reject":
            text = f"The thread {thread} has a run that goes on."
            raise Refused(text, code="thread_busy", hint="Wait for it, or choose another strategy.")
        sent = await self._tasks.send(task.id, None, said.text)
        return NumberedRun(await self._tasks.get(task.id, None), task.run.number + (sent == "queued"))

    async def _start(self, thread: str, agent: str, said: AgentMessage) -> NumberedRun:
        options = Options(notify=False, meta=dict(said.meta), fork=bool(said.context), context=said.context)
        task = await self._tasks.start(thread, Agent(agent, said.text).order(), options)
        return NumberedRun(task, task.run.number)

    async def _resume(self, task: Task, said: AgentMessage) -> NumberedRun:
        try:
            resumed = await self._tasks.resume(task.id, None, said.text, Options())
        except NotResumable as problem:
            if problem.code != "session_gone":
                raise
            context = tuple(await self._tasks.lines(task.id, None, last=LINES))
            return await self._start(task.thread, task.work.name, said._replace(context=context))
        return NumberedRun(resumed, resumed.run.number)

    async def _stopped(self, task: Task) -> Task:
        await self._tasks.cancel(task.id, None, reason="Another message came.")
        (task,) = await self._tasks.wait([task.id], None, timeout=STOP_SECONDS)
        if not task.ended:
            text = f"The run {task.id}.{task.run.number} did not stop within {STOP_SECONDS:g} seconds."
            raise Refused(text, code="still_stopping", hint="Send the message again later.")
        return task

    async def newest(self, thread: str, agent: str | None = None) -> Task | None:
        """The newest task of this agent in the thread, or the last that changed of any agent."""
        sort = Sort.NEWEST if agent is not None else Sort.UPDATED
        query = Query(thread, agent=agent, hidden=True, limit=PAGE, sort=sort)
        page = await self._tasks.page(query, counted=False)
        return next((task for task in page.tasks if task.work.kind == "agent"), None)

    async def run(self, id: str, thread: str | None) -> NumberedRun:
        """By its id; of this thread only, unless that is None."""
        split = split_run_id(id)
        hint = "Runs are listed with their thread."
        if split is None or not ID.match(split[0]):
            raise NotFound(f"There is no run {id[:128]!r}.", hint=hint)
        ref, number = split
        task = await self._tasks.get(ref, thread)
        found = await self._of(task, number) if task.id == ref and task.work.kind == "agent" else None
        if found is None:
            raise NotFound(f"There is no run {id[:128]!r}.", hint=hint)
        return found

    async def _of(self, task: Task, number: int) -> NumberedRun | None:
        now = task.run.number
        if number == now:
            return NumberedRun(task, number)
        if number == now + 1:
            stopped = task.status in (Status.CANCELLED, Status.CANCELLING)
            return NumberedRun(task, number) if task.follow_up or stopped else None
        if number > now:
            return None
        runs = await self._tasks.runs_of(task.id, None)
        return next((NumberedRun(run, number) for run in runs if run.run.number == number), None)

    async def runs(self, thread: str, limit: int, offset: int) -> Sequence[NumberedRun]:
        """Newest first."""
        found: list[NumberedRun] = []
        for at in range(0, SCANNED, PAGE):
            query = Query(thread, hidden=True, limit=PAGE, offset=at)
            page = await self._tasks.page(query, counted=False)
            for task in page.tasks:
                if task.work.kind == "agent":
                    found += await self._all_of(task)
            if len(page.tasks) < PAGE or len(found) >= offset + limit:
                break
        return found[offset : offset + limit]

    async def _all_of(self, task: Task) -> Sequence[NumberedRun]:
        runs = [task] if task.run.number == 1 else await self._tasks.runs_of(task.id, None)
        found = [NumberedRun(run, run.run.number) for run in reversed(runs)]
        return [NumberedRun(task, task.run.number + 1), *found] if task.follow_up else found

    async def cancel(self, run: NumberedRun, by: str) -> NumberedRun:
        """Asks the run to stop. A queued follow-up goes with the run before it: a cancelled task has no next
        run. One that has ended stays as it is."""
        if not run.ended:
            await self._tasks.cancel(run.task.id, None, by=by)
        return await self.run(run.id, None)

    async def answer(self, run: NumberedRun, text: str, by: str) -> NumberedRun:
        """To the question of a waiting run, which then goes on."""
        task = await self._tasks.answer(run.task.id, None, text, by=by)
        return NumberedRun(task, task.run.number)
