"""The objects that users hold first: Thread and Batch. Like all that they give out, they speak only to
ports.tasks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Any, Literal, Never, TypeVar

from msgspec.structs import replace

from meantime.conversation.dialect_lookup import OWN, Wording, reminder
from meantime.conversation.handle import Handle, Ref, Until, ref_of
from meantime.conversation.log import Log
from meantime.conversation.loop import SETTLE, Loop
from meantime.conversation.transcript import Transcript, Transcripts
from meantime.conversation.turn import Turn
from meantime.kernel import timeouts
from meantime.kernel.argument_checks import check_all, check_text, shown
from meantime.kernel.change import PARENT
from meantime.kernel.constraints import check_choice, check_flag
from meantime.kernel.due_times import delay_of, time_of
from meantime.kernel.errors import Closed, InvalidInput
from meantime.kernel.ids import check_id
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import WATCH
from meantime.kernel.lines import Line
from meantime.kernel.model import BatchCount, InlineLimits, Json, Output, Task
from meantime.kernel.plain_text import plain
from meantime.kernel.schedules import Schedule
from meantime.kernel.work import Agent, Orderable, order_of
from meantime.ports.adopted import Adopted
from meantime.ports.runner import Context
from meantime.ports.tasks import Answer, CancelAnswer, Options, Tasks
from meantime.toolset.toolset import Toolset
from meantime.toolset.work_catalog import GivenWorks

T = TypeVar("T")


def statuses_of(status: str | Iterable[str] | None) -> frozenset[Status] | None:
    """None lists active tasks; "all" lists everything; otherwise one status or several."""
    if status is None:
        return None
    names = [plain(status)] if isinstance(status, str) else check_all(status, str, "status")
    if names == ["all"]:
        return frozenset(Status)
    try:
        return frozenset(Status(name) for name in names)
    except ValueError:
        known = ", ".join(Status)
        raise InvalidInput(
            f"{shown(names)} names a status that is unknown.", hint=f"Use 'all' or: {known}."
        ) from None


class Thread:
    """A conversation that asks: it sees its own tasks, and is told of each ending once, in order."""

    def __init__(self, tasks: Tasks, id: str, transcripts: Transcripts | None = None) -> None:
        self._tasks = tasks
        self._transcripts = transcripts or Transcripts(tasks)
        self.id = id

    @property
    def transcript(self) -> Transcript:
        """A transcript kept in our own store: notices get into it exactly once. It is the same object each
        time, so what was added is there until it is saved, alone or with an ack."""
        return self._transcripts.of(self.id)

    async def start(
        self,
        work: Orderable[T],
        *mistaken: Never,
        timeout: float | str | None = None,
        description: str = "",
        batch: str | Batch | None = None,
        tool_call_id: str | None = None,
        message_id: str | None = None,
        id: str | None = None,
        notify: bool = True,
        retry: str = "",
        on_limit: str | None = None,
        inline: InlineLimits | None = None,
        fork: bool = False,
        fork_of: Ref | None = None,
        context: Sequence[Line] = (),
        resume: str | None = None,
        session: str | None = None,
        meta: dict[str, Json] | None = None,
        place: str | None = None,
        delay: float | str | timedelta | None = None,
        at: datetime | float | str | None = None,
    ) -> Handle[T]:
        """Hands the work off. When this returns, the task survives a crash, and its id is yours.

        work: a `Call`, `Shell`, `Tool`, `Agent` or `Watch`.
        mistaken: nothing goes here; arguments of a function belong into its `Call`.
        timeout: seconds, or a text such as "90s" or "1h30m"; None is the default, -1 as long as the
            settings allow.
        description: what people and the agent call it; by default the name of its work.
        batch: the batch that it joins; None is the thread's open batch, or a new one.
        tool_call_id: the tool call that asked; a second start for the same one is refused.
        message_id: the message of the conversation that asked.
        id: an id of your own; None makes one.
        notify: False records the ending, and tells nobody.
        retry: "idempotent" may run again after a crash; otherwise such a run ends `lost`.
        on_limit: "queue" or "reject" where no slot is free; None is what the limits say.
        inline: how much of the result stays in the message.
        fork: for agents: True begins with `context`, `session` or the thread's own transcript.
        fork_of: for agents: a task whose conversation it goes on from, ended or not.
        context: for agents: the lines of the conversation that it goes on from.
        resume: for agents: an ended task to resume, instead of a new one.
        session: for agents: the session to work in or, with `fork`, to copy.
        meta: a JSON object of yours, kept with the task; at most 16 KB.
        place: "pool:NAME" runs it at a worker of that pool, "here" at the owner of the ledger; None is what
            the settings say.
        delay: starts it later, as of `remind`; until then it is queued and takes no slot. All that it needs
            must be stored: no `env=` of a command, no closure.
        at: the same, at a time.

        Raises InvalidInput, Duplicate, LimitReached, Degraded, and NotResumable with `resume`.
        """
        order = order_of(work, *mistaken)
        lines = check_all(context, Line, "context")
        options = Options(
            timeout=timeouts.given(timeout),
            description=description,
            batch=batch.id if isinstance(batch, Batch) else batch,
            tool_call_id=tool_call_id,
            message_id=message_id,
            id=id,
            notify=notify,
            retry=retry,
            on_limit=on_limit,
            inline=inline,
            fork=check_flag(fork, "fork") or fork_of is not None or bool(lines),
            fork_of=None if fork_of is None else ref_of(fork_of),
            context=tuple(lines),
            session=session,
            meta={} if meta is None else meta,
            place=place,
            delay=None if delay is None else delay_of(delay),
            at=None if at is None else time_of(at),
        )
        if resume is not None:
            prompt = work.prompt if isinstance(work, Agent) else ""
            return Handle(self._tasks, self.id, await self._tasks.resume(resume, self.id, prompt, options))
        return Handle(self._tasks, self.id, await self._tasks.start(self.id, order, options))

    async def call(self, work: Orderable[Any], *, threshold: float | None = None, **options: Any) -> Answer:
        """Waits for the result up to `threshold` seconds; after that the same run continues as a task.
        A result or a task, never both, and never executed twice.

        work: a `Call`, `Shell`, `Tool` or `Agent`.
        threshold: seconds; None waits for ever.
        options: those of `start`.
        """
        return await self._tasks.call(self.id, order_of(work), options_of(options), threshold)

    async def calls(self) -> Sequence[Task]:
        """The calls that this thread waits for in `call` now, oldest first. These are not recorded yet."""
        return await self._tasks.calls(self.id)

    async def promote(self, ref: Ref) -> Handle[Any]:
        """Sends a call of this thread that runs inline to the background, at once: it is a task from
        now on, and its caller gets that task as its answer. Nothing is executed again."""
        return Handle(self._tasks, self.id, await self._tasks.promote(ref_of(ref), self.id))

    async def adopt(
        self,
        future: Future[Any] | asyncio.Future[Any],
        *,
        name: str,
        arguments: Json = None,
        running_for: float = 0.0,
        linked: Callable[[Context], object] | None = None,
        **options: Any,
    ) -> Handle[Any]:
        """Records a future that is executing already as a running task. Its result or exception is
        the ending; a cancel asks the future, and leaves it behind where it will not stop.

        future: of a worker thread or of this event loop.
        name: what the work is called.
        arguments: what it was called with, as JSON, for people.
        running_for: the seconds it has been running; timeout and duration count from its beginning.
        linked: is called with the `current()` of this task, for work that wants to look at it.
        options: those of `start`.
        """
        order = Adopted(future, name, arguments, linked).order()
        task = await self._tasks.adopt(self.id, order, options_of(options), running_for)
        return Handle(self._tasks, self.id, task)

    async def resume(self, ref: Ref, prompt: str, *, timeout: float | str | None = None) -> Handle[Any]:
        """Begins a new run of an ended task, in its own session, with all it knows.

        ref: the task.
        prompt: the follow-up.
        timeout: as of `start`, for this run.

        Raises NotResumable while it runs, and where its session is gone.
        """
        task = await self._tasks.resume(
            ref_of(ref), self.id, prompt, Options(timeout=timeouts.given(timeout))
        )
        return Handle(self._tasks, self.id, task)

    async def fork(self, ref: Ref, prompt: str, **options: Any) -> Handle[Any]:
        """Starts a task that begins with all that another one knows, whether that has ended or not.

        ref: the other task, of an agent.
        prompt: what the new one is to do.
        options: those of `start`.
        """
        task = await self._tasks.get(ref_of(ref), self.id)
        if task.work.kind != "agent":
            raise InvalidInput(
                f"{task.work.kind} tasks have no conversation to fork.", code="nothing_to_fork"
            )
        return await self.start(Agent(task.work.name, prompt), fork_of=task.id, **options)

    async def get(self, ref: Ref) -> Task:
        """The task as it is now. Raises NotFound and Ambiguous."""
        return await self._tasks.get(ref_of(ref), self.id)

    async def list(
        self,
        status: str | Iterable[str] | None = None,
        *,
        batch: str | None = None,
        history: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Task]:
        """This thread's tasks, newest first.

        status: one status or several; "all" is every one, and None those that are active.
        batch: only the tasks of this batch.
        history: True lists cleared tasks too, and those beyond `Retention.hot`.
        limit: the most tasks.
        offset: how many to skip.
        """
        wanted = statuses_of(status)
        return await self._tasks.list(
            self.id, wanted, batch=batch, history=history, limit=limit, offset=offset
        )

    async def runs(self, ref: Ref) -> Sequence[Task]:
        """The task as each of its runs left it, oldest first; the last is as it is now."""
        return await self._tasks.runs_of(ref_of(ref), self.id)

    async def position(self, ref: Ref) -> int | None:
        """A queued task's place in its queue: 1 is next; None is not queued."""
        return await self._tasks.position(ref_of(ref), self.id)

    async def output(self, ref: Ref, *, wait: float = 0) -> Output:
        """The readable output of the task now; `wait` gives it so many seconds to end first.

        ref: the task.
        """
        return await self._tasks.output(ref_of(ref), self.id, wait=wait)

    def log(self, ref: Ref) -> Log:
        """The output of a command: read, tail or follow it."""
        return Log(self._tasks, ref_of(ref), self.id)

    async def send(self, ref: Ref, data: str | bytes = "", *, eof: bool = False) -> str:
        """Sends a running command more of its stdin, or a running agent a text. An agent receives it now if
        it can be steered (the answer is "steered"); otherwise it is the follow-up of its next run (the answer
        is "queued").

        ref: the task.
        data: text or bytes.
        eof: True closes the stdin.
        """
        return await self._tasks.send(ref_of(ref), self.id, data, eof=eof)

    async def notify(self, ref: Ref, text: str) -> str:
        """Tells this conversation something about a task before the task ends, as endings are told. Returns
        "sent" once it is in a notice, alone or with those before it; "waiting" if a later notice tells it.

        ref: the task, which must not have ended.
        text: what to tell; it is cut at 4,000 characters.
        """
        return await self._tasks.notify(ref_of(ref), self.id, text)

    async def remind(
        self,
        text: str,
        *,
        delay: float | str | timedelta | None = None,
        at: datetime | float | str | None = None,
        tool_call_id: str | None = None,
    ) -> Schedule:
        """Tells this conversation the text at a later time, once, as endings are told. It survives restarts,
        and comes late rather than never. Give `delay` or `at`.

        text: what to be reminded of; at most 4,000 characters.
        delay: seconds, a text such as "20m", or a timedelta. It goes on while the machine sleeps, and nobody
            can set its clock.
        at: a datetime with its time zone, the same as ISO 8601, or seconds since 1970, by the wall clock. At
            most a minute in the past.
        tool_call_id: the tool call that asked; a second reminder for the same one is refused.

        Raises InvalidInput, Duplicate, LimitReached and Degraded.
        """
        return await self._tasks.remind(
            self.id, text, at=time_of(at), delay=delay_of(delay), tool_call_id=tool_call_id
        )

    async def schedules(self, *, limit: int = 100, offset: int = 0) -> Sequence[Schedule]:
        """The reminders of this conversation that are still to come, soonest first.

        limit: the most of them.
        offset: how many to skip.
        """
        return await self._tasks.schedules(self.id, limit=limit, offset=offset)

    async def cancel_schedule(self, id: str | Schedule) -> Schedule:
        """Cancels a reminder: it never comes. Asking twice is harmless.

        id: its id, or what `remind` returned.

        Raises NotFound, and Refused where it has come already.
        """
        return await self._tasks.cancel_schedule(id.id if isinstance(id, Schedule) else id, self.id)

    async def answer(self, ref: Ref, text: str, *, scope: str | None = None, by: str = "agent") -> Task:
        """Answers the question of a task that waits for input.

        ref: the task.
        text: the answer: a text, or one of the choices.
        scope: for a permission: "once" or "task".
        by: "agent", or "user" for a person. An agent may refuse a permission and not give it.
        """
        return await self._tasks.answer(ref_of(ref), self.id, text, scope=scope, by=by)

    async def lines(
        self, ref: Ref, *, kinds: Sequence[str] = (), roles: Sequence[str] = (), last: int | None = None
    ) -> Sequence[Line]:
        """The conversation of an agent's session, over all runs, oldest first.

        ref: the task.
        kinds: text, thought, call, result, summary; none is all.
        roles: user, assistant, tool, system; none is all.
        last: only so many, the newest.
        """
        return await self._tasks.lines(ref_of(ref), self.id, kinds=kinds, roles=roles, last=last)

    async def result(self, ref: Ref) -> Json:
        """The whole result. Raises StillRunning before there is one, TaskEnded where there is none."""
        return await self._tasks.result(ref_of(ref), self.id)

    async def wait(self, *refs: Ref, until: Until = "all", timeout: float | None = None) -> Sequence[Task]:
        """Waits until all or any of the tasks have ended. Returns them as they are then.

        refs: the tasks; none is all that are active now, without watches, which may never end.
        until: "all" or "any".
        timeout: the most seconds to wait; None waits for ever.
        """
        ids = [ref_of(ref) for ref in refs]
        if not ids:
            ids = [task.id for task in await self.list(limit=1_000) if task.work.kind != WATCH]
        return await self._tasks.wait(ids, self.id, until=until, timeout=timeout)

    async def cancel(
        self, ref: Ref, *, by: str = "agent", reason: str = "", wait: bool = False
    ) -> CancelAnswer:
        """Asks a task to stop. Asking twice is harmless.

        ref: the task.
        by: who asks; kept with the outcome.
        reason: kept with the outcome.
        wait: True answers with the ending.
        """
        return await self._tasks.cancel(ref_of(ref), self.id, by=by, reason=reason, wait=wait)

    async def cancel_all(self, *, by: str = "agent") -> Sequence[CancelAnswer]:
        """Asks all active tasks of this thread to stop; `by` says who asks."""
        return await self._tasks.cancel_all(self.id, by=by)

    async def interrupt(self, tasks: Literal["keep", "own", "all"] = "keep") -> Sequence[CancelAnswer]:
        """The conversation was interrupted: keep its work, cancel its own, or its descendants' too."""
        chosen = check_choice(tasks, "tasks", ("keep", "own", "all"))
        if chosen == "keep":
            return ()
        return await self._tasks.cancel_all(self.id, descendants=chosen == "all", by="interrupt")

    async def close(self, tasks: Literal["cancel", "keep"] = "cancel") -> Sequence[CancelAnswer]:
        """The conversation is over: its tasks are cancelled or kept, never another thread's. Ended tasks
        leave its lists, and cancelled ones do so when they end; `get` and the history still have them.
        """
        keeps = check_choice(tasks, "tasks", ("cancel", "keep")) == "keep"
        answers = () if keeps else await self._tasks.cancel_all(self.id, by=PARENT)
        await self._tasks.clear(self.id)
        return answers

    async def retry(self, ref: Ref) -> Task:
        """Always raises RetryNotSupported: resume the task, or start a new one."""
        return await self._tasks.retry(ref_of(ref), self.id)

    async def clear(self, *refs: Ref, batch: str | None = None, older_than: float = 0.0) -> int:
        """Hides ended tasks from listings. Nothing is deleted, and untold endings are still told. Returns how
        many.

        refs: the tasks; none is all that have ended.
        batch: only those of this batch.
        older_than: only those that ended at least so many seconds ago.
        """
        ids = [ref_of(ref) for ref in refs] or None
        return await self._tasks.clear(self.id, ids, batch=batch, older_than=older_than)

    async def reminder(self, dialect: Wording | None = None) -> str:
        """Running tasks, and ended ones that were not told, for every turn; empty when there is nothing."""
        return await reminder(self._tasks, self.id, dialect)

    def toolset(
        self,
        dialect: Wording = OWN,
        *,
        agents: Sequence[str] | Mapping[str, str] | None = (),
        tools: Mapping[str, Callable[..., Any]] | None = None,
        commands: Callable[..., Orderable[Any]] | None = None,
        turn: Turn | None = None,
        allow: Collection[str] | None = None,
        background: bool = True,
        allow_model_cancel: bool = True,
        depth: int | None = None,
        session: str | None = None,
        context: Callable[[], Sequence[Line]] | None = None,
    ) -> Toolset:
        """This thread's verbs as tools for its agent, in the words of a dialect.

        dialect: a name such as "psi", or a dialect of your own.
        agents: those that may be started, by name, or a mapping that says what each is for; empty is any,
            None is none.
        tools: functions that may be started, by name.
        commands: `Shell`, where the agent may start commands; None is not.
        turn: reads of endings count as told with its ack, where the dialect says so.
        allow: only the tools with these names; an empty list is none.
        background: False takes away what hands work off. So does a depth at which no more may start:
            `depth` is that of the task that this agent works on; None asks the work that runs here.
        allow_model_cancel: False removes the tools that cancel.
        session, context: the start of a fork of this agent: its session, if the host of the new agent can
            copy it, or a function that gives the conversation; otherwise the thread's transcript.
        """
        return Toolset(
            self._tasks,
            GivenWorks(self._tasks, agents, tools, commands),
            self.id,
            dialect,
            turn=turn,
            allow=allow,
            background=background,
            allow_model_cancel=allow_model_cancel,
            depth=depth,
            session=session,
            context=context,
        )

    def batch(self, id: str) -> Batch:
        """A batch of this thread, under an id of yours: tasks that are handed off together."""
        return Batch(self, self._tasks, check_id(id, "batch"))

    def turn(
        self, id: str = "", *, lease: float | None = None, limit: int = 100, reads_settle: bool = True
    ) -> Turn:
        """A stretch of the agent's work, with the unread notices leased to it.

        id: of a turn that is open already, perhaps in another process, to go on with it: name the notices
        that you ack.
        lease: seconds after which an unrenewed turn counts as dead; None holds while the block is open.
        limit: the most notices that one turn takes.
        reads_settle: whether an ending that the agent reads in this turn counts as told with its ack.
        """
        known = check_text(id, "id", 128)
        settles = check_flag(reads_settle, "reads_settle")
        return Turn(self._tasks, self.id, known, lease=lease, limit=limit, reads_settle=settles)

    def loop(
        self,
        *,
        settle: float = SETTLE,
        lease: float | None = None,
        limit: int = 100,
        reads_settle: bool = True,
    ) -> Loop:
        """When to take a turn: somebody said something, or the thread is idle with something unread.

        settle: seconds that a woken agent waits for more, so that what ends together shares a turn.
        lease, limit, reads_settle: as of `turn`.
        """
        options = {"lease": lease, "limit": limit, "reads_settle": reads_settle}
        return Loop(self._tasks, self.id, settle, options)

    async def wakeups(self) -> AsyncIterator[None]:
        """Yields whenever the thread is idle with something unread, until this Meantime is closed."""
        seen = -1
        while True:
            try:
                seen = await self._tasks.wait_wake(self.id, seen)
            except Closed:
                return
            yield

    async def unpark(self, notices: Sequence[str] | None = None) -> int:
        """Puts notices that were parked after failed deliveries back into the inbox.

        notices: only these, by their ids."""
        return await self._tasks.unpark(self.id, notices)

    def __repr__(self) -> str:
        return f"<Thread {self.id}>"


class Batch:
    """Tasks handed off together: n of m."""

    def __init__(self, thread: Thread, tasks: Tasks, id: str) -> None:
        self._thread = thread
        self._tasks = tasks
        self.id = id

    async def start(self, work: Orderable[T], **options: Any) -> Handle[T]:
        """Hands work off as a part of this batch.

        work: a `Call`, `Shell`, `Tool`, `Agent` or `Watch`.
        options: those of `Thread.start`, except `batch`.
        """
        return await self._thread.start(work, batch=self.id, **options)

    async def count(self) -> BatchCount:
        """How many tasks of this batch have ended, and how many there are."""
        return await self._tasks.batch(self.id, self._thread.id)

    async def list(self, status: str | Iterable[str] | None = "all") -> Sequence[Task]:
        """The tasks of this batch, newest first: all of them, or those of the statuses that you name."""
        return await self._thread.list(status, batch=self.id, limit=1_000)

    async def wait(self, *, until: Until = "all", timeout: float | None = None) -> Sequence[Task]:
        """Waits until all or any of the batch's tasks have ended. Returns them in the order of their start.

        until: "all" or "any".
        timeout: the most seconds to wait; None waits for ever. Tasks that have not ended are returned as
            they are.
        """
        return await self._thread.wait(*reversed(await self.list()), until=until, timeout=timeout)

    async def cancel(self, *, by: str = "agent") -> Sequence[CancelAnswer]:
        """Asks every active task of this batch to stop; `by` says who asks."""
        return await self._tasks.cancel_all(self._thread.id, batch=self.id, by=by)

    async def clear(self) -> int:
        """Hides the ended tasks of this batch from listings. Returns how many."""
        return await self._thread.clear(batch=self.id)


def options_of(given: dict[str, Any]) -> Options:
    timeout = timeouts.given(given.get("timeout"))
    return replace(Options(**given), timeout=timeout)
