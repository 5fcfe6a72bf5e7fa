"""Performs asks, by the verbs of ports/tasks.py and a dialect's policy. The only place that does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, cast

from msgspec import structs

from meantime.kernel.bounds import cut, cut_ending, error_text, inline_answer
from meantime.kernel.errors import (
    InvalidInput,
    LimitReached,
    MeantimeError,
    NotFound,
    NotResumable,
    TaskEnded,
)
from meantime.kernel.lifecycle import ACTIVE
from meantime.kernel.limits import NO_LIMIT
from meantime.kernel.lines import Line
from meantime.kernel.model import Chunk, InlineLimits, Task
from meantime.kernel.notice_sources import SourceKind, notice_id
from meantime.kernel.watches import KIND, Watch
from meantime.kernel.work import Agent, Order
from meantime.ports import asks
from meantime.ports.asks import Answer, Ask, Starting
from meantime.ports.dialect import Policy
from meantime.ports.store import Query
from meantime.ports.tasks import Options, Tasks, options_from

from .work_catalog import Works

BEAT = 15.0  # seconds: a host may cut off a call that says nothing for longer
MOST_LISTED, MOST_READ = 200, 64_000
MOST_UNTOLD = 20  # endings that a wait for everything tells; the others are told by their notices
NO_AGENTS = "There are none here: name one with [agents.NAME] in the configuration."
LONGEST = 600.0  # seconds of one wait
AS_OWNER = ("command", "file")  # what a watch looks at with the owner's rights, outside of any sandbox
OPEN_NOTICES = ("unread", "leased", "parked")
Beat = Callable[[float, float, str], Awaitable[None]]


class Forking(NamedTuple):
    """The start of a fork: a session that its host copies, or the conversation; otherwise the transcript of
    the thread that we keep ourselves.
    """

    session: str | None = None
    context: Callable[[], Sequence[Line]] | None = None

    def options(self) -> dict[str, Any]:
        said = tuple(self.context()) if self.context is not None and self.session is None else ()
        return {"fork": True, "session": self.session, "context": said}


async def silent(spent: float, most: float, message: str) -> None:
    """Nobody needs to know how long a wait has lasted."""


class Performer:
    """For one thread. `by` says who asks: it is kept with a cancelled task."""

    def __init__(
        self,
        tasks: Tasks,
        works: Works,
        thread: str,
        policy: Policy,
        inline: InlineLimits | None,
        forking: Forking,
    ) -> None:
        self._tasks = tasks
        self._works = works
        self._thread = thread
        self._policy = policy
        self._inline = inline
        self._forking = forking
        self._starting = asyncio.Lock()
        self._doing: dict[type[Ask], Callable[..., Awaitable[Answer]]] = {
            asks.Resume: self._resume,
            asks.Send: self._send,
            asks.Respond: self._respond,
            asks.Read: self._read,
            asks.List: self._list,
            asks.CancelSchedule: self._cancel_schedule,
            asks.Wait: self._wait,
            asks.Cancel: self._cancel,
            asks.CancelAll: self._cancel_all,
            asks.Clear: self._clear,
            asks.Tools: self._tools,
            asks.SetLimit: self._set_limit,
        }

    async def perform(self, ask: Ask, beat: Beat = silent, by: str = "agent", **origin: Any) -> Answer:
        """`origin` is the tool call and the message that ask, for what is started. A dialect may add to an
        ask what only its own words need: it is performed as what it is made of."""
        if isinstance(ask, Starting):
            return await self._start(ask, origin)
        if isinstance(ask, asks.SetReminder):
            return await self._remind(ask, origin.get("tool_call_id"))
        doing = next(self._doing[kind] for kind in type(ask).__mro__ if kind in self._doing)
        if isinstance(ask, asks.Read | asks.Wait):
            return await doing(ask, beat)
        if isinstance(ask, asks.Cancel | asks.CancelAll | asks.Respond):
            return await doing(ask, by)
        return await doing(ask)

    # -- starting

    async def start(self, ask: Starting, **more: Any) -> Task:
        await self._check_agent(ask)
        options = self._options(ask, more)
        if self._policy.most_active is None:
            return await self._begin(ask, options)
        async with self._starting:  # calls side by side are counted one after the other
            await self._check_room()
            return await self._begin(ask, options)

    async def _begin(self, ask: Starting, options: Options) -> Task:
        if isinstance(ask, asks.StartTool):
            return await self._works.start_tool(self._thread, ask.name, ask.arguments, options)
        if isinstance(ask, asks.StartWatch):
            ask = await self._own_watch(ask)
        return await self._tasks.start(self._thread, self._order(ask), options)

    async def _own_watch(self, ask: asks.StartWatch) -> asks.StartWatch:
        """An agent watches the tasks of its own conversation, and no other's."""
        ref = ask.watch.get("log")
        if ref is None:
            return ask
        task = await self._tasks.get(ref, self._thread)
        return structs.replace(ask, watch={**ask.watch, "log": task.id})

    async def _check_agent(self, ask: Starting) -> None:
        """A schema names those that may be started, and a model may call another all the same."""
        if not isinstance(ask, asks.StartAgent):
            return
        names = await self._works.agents()
        if names is None or (names and ask.agent not in names):
            there = f"There are: {', '.join(names)}." if names else NO_AGENTS
            raise NotFound(f"There is no agent {ask.agent[:100]!r} to start.", hint=there)

    async def _check_room(self) -> None:
        most = self._policy.most_active
        if most is None or most == NO_LIMIT:
            return
        running = (await self._tasks.thread(self._thread)).active
        if running >= most:
            text = f"{running} of at most {most} background tasks are running."
            raise LimitReached(text, running=running, limit=most)

    async def _start(self, ask: Starting, origin: dict[str, Any]) -> Answer:
        if ask.background:
            return self._about(await self.start(ask, inline=self._inline, **origin))
        await self._check_agent(ask)
        order = (
            self._works.tool(ask.name, ask.arguments) if isinstance(ask, asks.StartTool) else self._order(ask)
        )
        threshold = ask.threshold
        try:
            await self._check_room()
        except LimitReached:
            threshold = None  # it goes on in the foreground
        try:
            answer = await self._tasks.call(self._thread, order, self._options(ask, origin), threshold)
        except TaskEnded as error:
            raise _shown(error) from error
        except MeantimeError:
            raise
        except Exception as problem:  # what a function raised itself
            said = str(problem)
            text = f"{type(problem).__name__}: {said}" if said else type(problem).__name__
            raise MeantimeError(error_text(text), code="tool_failed") from problem
        if answer.task is not None:
            return self._about(answer.task)
        ending = None if answer.ending is None else cut_ending(answer.ending)
        result = inline_answer(answer.result)
        return Answer(now=self._tasks.now(), inline=True, result=result, ending=ending)

    def _options(self, ask: Starting, more: dict[str, Any]) -> Options:
        if isinstance(ask, asks.StartAgent) and ask.fork:
            more = more | self._forking.options()
        return options_from(ask, on_limit=self._policy.on_limit, **more)

    def _order(self, ask: Starting) -> Order:
        if isinstance(ask, asks.StartAgent):
            return Agent(ask.agent, ask.prompt, **ask.input).order()
        if isinstance(ask, asks.StartWatch):
            return self._watch(Watch(**ask.watch))
        command = cast("asks.StartCommand", ask)
        return self._works.command(command.command, cwd=command.cwd, open_stdin=command.stdin)

    def _watch(self, watch: Watch) -> Order:
        if watch.spec.source in AS_OWNER and not self._works.plain_commands:
            raise InvalidInput(
                f"A {watch.spec.source} cannot be watched here: it would be with the rights of the owner.",
                hint="Start a command, and watch its output by its id.",
                code="not_watchable",
            )
        return watch.order()

    async def _resume(self, ask: asks.Resume) -> Answer:
        task = await self._tasks.get(ask.ref, self._thread)
        if task.ended and task.status not in self._policy.resumable:
            words = " or ".join(sorted(self._policy.resumable))
            raise NotResumable(
                f"This task is {task.status}; only a {words} task can be resumed.", code="not_completed"
            )
        options = options_from(ask, on_limit=self._policy.on_limit)
        return self._about(await self._tasks.resume(task.id, self._thread, ask.prompt, options))

    async def _send(self, ask: asks.Send) -> Answer:
        sent = await self._tasks.send(ask.ref, self._thread, ask.text, eof=ask.eof)
        return structs.replace(self._about(await self._tasks.get(ask.ref, self._thread)), sent=sent)

    async def _respond(self, ask: asks.Respond, by: str) -> Answer:
        return self._about(await self._tasks.answer(ask.ref, self._thread, ask.text, by=by))

    async def _remind(self, ask: asks.SetReminder, tool_call_id: str | None) -> Answer:
        schedule = await self._tasks.remind(
            self._thread, ask.text, at=ask.at, delay=ask.delay, tool_call_id=tool_call_id
        )
        return Answer(now=self._tasks.now(), schedules=[schedule])

    async def _cancel_schedule(self, ask: asks.CancelSchedule) -> Answer:
        gone = await self._tasks.cancel_schedule(ask.id, self._thread)
        return Answer(now=self._tasks.now(), schedules=[gone])

    # -- looking

    async def get(self, ref: str) -> Task:
        return await self._tasks.get(ref, self._thread)

    async def _read(self, ask: asks.Read, beat: Beat) -> Answer:
        task = await self._tasks.get(ask.ref, self._thread)
        if ask.wait and not task.ended:
            (task,) = await self._waited([task.id], "all", ask.wait, beat)
        output = await self._tasks.output(task.id, self._thread)
        told = ask.told and await self._was_told(output.task)
        answer = structs.replace(self._about(output.task), output=output, told=told)
        speaks = task.work.kind == "shell" or (task.work.kind == "agent" and not task.ended)
        if not speaks or (ask.tail is None and ask.offset is None):
            return answer
        try:
            return structs.replace(answer, chunk=await self._chunk(task, ask))
        except MeantimeError as problem:
            if problem.code != "no_log":  # of an agent whose runner keeps none, there is what it emitted
                raise
            return answer

    async def _was_told(self, task: Task) -> bool:
        """Its notice is none of those that are still open."""
        if not task.ended or not task.notify:
            return False
        id, seen = notice_id(task.id, task.run.number), 0
        while page := await self._tasks.notices(self._thread, OPEN_NOTICES, offset=seen):
            if any(notice.id == id for notice in page):
                return False
            seen += len(page)
        return True

    async def _chunk(self, task: Task, ask: asks.Read) -> Chunk:
        if ask.offset is None:
            return await self._tasks.tail(task.id, self._thread, "both", ask.tail or 1, MOST_READ)
        return await self._tasks.read(task.id, self._thread, "both", ask.offset, MOST_READ)

    async def _list(self, ask: asks.List) -> Answer:
        if ask.batch is None and self._policy.listed == "cleared":
            query = Query(self._thread, ask.statuses, limit=ask.limit)
            found = (await self._tasks.page(query, counted=False)).tasks
        else:
            found = await self._tasks.list(self._thread, ask.statuses, batch=ask.batch, limit=ask.limit)
        wanted = ask.meta.items()
        kept = [task for task in self._listed(found) if all(task.meta.get(key) == one for key, one in wanted)]
        coming = await self._tasks.schedules(self._thread, limit=ask.limit) if ask.schedules else ()
        return Answer(now=self._tasks.now(), tasks=kept, schedules=coming)

    def _listed(self, tasks: Sequence[Task]) -> list[Task]:
        """The ended tasks that the policy lists."""
        most, seconds = self._most_listed(), self._policy.listed_seconds
        kept: list[Task] = []
        ended = 0
        for task in tasks:
            if task.ended:
                ended += 1
                age = self._tasks.now() - (task.run.ended_at or 0.0)
                if (most is not None and ended > most) or (seconds is not None and age > seconds):
                    continue
            kept.append(task)
        return kept

    def _most_listed(self) -> int | None:
        per_slot, slots = self._policy.listed_per_slot, self._policy.most_active
        if per_slot is not None and slots is None:
            slots = self._tasks.limits().for_kind("agent")
        return self._policy.listed_most if per_slot is None or slots in (None, NO_LIMIT) else per_slot * slots

    async def _wait(self, ask: asks.Wait, beat: Beat) -> Answer:
        ids = ask.refs or await self._expected()
        if not ids:
            return Answer(now=self._tasks.now())
        return Answer(now=self._tasks.now(), tasks=await self._waited(ids, ask.until, ask.seconds, beat))

    async def _expected(self) -> Sequence[str]:
        """All tasks that the conversation expects an ending of. A task that has ended just before the wait is
        one of them: nobody was told of it yet. A watch is none: it may never end."""
        found = list(await self._tasks.list(self._thread, ACTIVE, limit=MOST_LISTED))
        if not self._tasks.has_empty_inbox(self._thread):  # looked at second: what ends meanwhile is in both
            unread = await self._tasks.notices(self._thread, ("unread",), limit=MOST_UNTOLD)
            endings = (one.task for one in unread if one.kind is SourceKind.ENDING and not one.delivery)
            found += [task for task in endings if task.thread == self._thread]
        return list(dict.fromkeys(task.id for task in found if task.work.kind != KIND))

    async def _waited(self, ids: Sequence[str], until: str, seconds: float, beat: Beat) -> Sequence[Task]:
        """In stretches, and says after each that it lives. They are counted, not measured: the clock is
        the owner's."""
        if not 0 <= seconds <= LONGEST:
            raise InvalidInput(f"A wait of {seconds:g} seconds is not possible; the longest is {LONGEST:g}.")
        left = seconds
        while True:
            stretch = min(BEAT, left)
            found = await self._tasks.wait(ids, self._thread, until=until, timeout=stretch)
            left -= stretch
            ended = sum(task.ended for task in found)
            if ended == len(found) or (until == "any" and ended) or left <= 0:
                return found
            await beat(seconds - left, seconds, f"{ended} of {len(found)} have ended")

    async def _tools(self, ask: asks.Tools) -> Answer:
        names = [*await self._works.registered_tools(), *await self._works.server_tools()]
        return Answer(now=self._tasks.now(), names=names, agents=tuple(await self._works.agents() or ()))

    # -- stopping, clearing

    async def _cancel(self, ask: asks.Cancel, by: str) -> Answer:
        waits = self._policy.cancel_waits
        answer = await self._tasks.cancel(ask.ref, self._thread, by=by, reason=ask.reason, wait=waits)
        return structs.replace(self._about(answer.task), dispositions=[answer.disposition])

    async def _cancel_all(self, ask: asks.CancelAll, by: str) -> Answer:
        answers = await self._tasks.cancel_all(self._thread, batch=ask.batch, by=by)
        tasks: Sequence[Task] = [answer.task for answer in answers]
        if tasks and self._policy.cancel_waits:
            tasks = await self._tasks.wait([task.id for task in tasks], self._thread)
        dispositions = [answer.disposition for answer in answers]
        return Answer(now=self._tasks.now(), tasks=tasks, dispositions=dispositions)

    async def _clear(self, ask: asks.Clear) -> Answer:
        refs = list(ask.refs) or None
        count = await self._tasks.clear(self._thread, refs, batch=ask.batch)
        return Answer(now=self._tasks.now(), count=count)

    async def _set_limit(self, ask: asks.SetLimit) -> Answer:
        limits = self._tasks.limits()
        limits = structs.replace(limits, per_kind={**limits.per_kind, ask.kind: ask.most})
        await self._tasks.set_limits(limits)
        return Answer(now=self._tasks.now(), limits=limits)

    def _about(self, task: Task) -> Answer:
        return Answer(now=self._tasks.now(), tasks=[task])


def _shown(error: TaskEnded) -> TaskEnded:
    """The ending of a call that was waited for, as a model is shown it. It has no file."""
    outcome = error.task.outcome
    task = error.task if outcome is None else structs.replace(error.task, outcome=cut(outcome))
    return type(error)(error_text(error.message), task)
