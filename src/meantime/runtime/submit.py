"""submit: check the order, take a slot or a place in the queue, make it durable, then let it run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, cast

from msgspec.structs import replace

from meantime.kernel.argument_checks import check_text
from meantime.kernel.change import Disposition, Facts
from meantime.kernel.constraints import check_fields
from meantime.kernel.due_times import DueTime, due_time
from meantime.kernel.errors import Duplicate, InvalidInput, NotFound, NotResumable, Refused
from meantime.kernel.fork_context import seed
from meantime.kernel.ids import ENTROPY, batch_id, task_id
from meantime.kernel.lifecycle import Move, Status
from meantime.kernel.limits import WATCH, lane_for, lane_of
from meantime.kernel.lines import ROLES, Line
from meantime.kernel.model import Run, Task
from meantime.kernel.placement import HERE, PLACED, check_place, place_of
from meantime.kernel.timeouts import resolve
from meantime.kernel.work import Order, check_input
from meantime.ports.engine import Engine
from meantime.ports.runner import Assignment, LastingRunner, Runner, Standing, TalkingRunner
from meantime.ports.store import Entry
from meantime.ports.tasks import Options
from meantime.ports.worker_pools import HERE as NO_WORKERS
from meantime.ports.worker_pools import Placing

from .admit import Admission
from .batches import Batches
from .delayed_starts import DelayedStarts
from .entropy import entropy
from .lineage import Parent, allowed_below, parent_of
from .record import Record, Then
from .settings import Settings

MAX_PROMPT = 1_000_000  # characters


class Submission:
    def __init__(
        self,
        record: Record,
        admission: Admission,
        batches: Batches,
        engine: Engine,
        settings: Settings,
        delayed: DelayedStarts,
        placing: Placing = NO_WORKERS,
    ) -> None:
        self._delayed = delayed
        self._record = record
        self._admission = admission
        self._engine = engine
        self._settings = settings
        self._batches = batches
        self._placing = placing
        self._preparing: set[str] = set()  # on their way to the ledger

    async def start(self, thread: str, order: Order, options: Options) -> Task:
        options = check_fields(options)
        runner = self._engine.runner(order.work.kind)
        parent = await parent_of(options, self._record)
        batch = self._batches.choose(thread, self._batch_of(order, options))
        place = self._place_of(order, options)
        if place and order.work.kind == "shell":
            order = order.for_worker()
        # With a free slot the task is created running: one commit, and the work starts after it. Work of a
        # pool is queued until a worker has claimed it.
        lane = lane_for(thread, order.work, place)
        not_before = self._not_before(options)
        # A watch that waits for a slot would watch nothing, without anybody noticing.
        on_limit = "reject" if order.work.kind == WATCH else options.on_limit
        starts = not_before is None and self._admission.is_open(lane, on_limit=on_limit) and not place
        if options.fork:
            if not runner.abilities.talk:
                raise InvalidInput(
                    f"{order.work.kind} tasks have no conversation to fork.", code="nothing_to_fork"
                )
            order = await self._forking(thread, order, options)
        task = self.new_task(
            thread, order, options, runner, batch, parent, running=starts, place=place, not_before=not_before
        )
        assignment = Assignment(task, order.target, order.args, order.kwargs)
        runner.check(task, assignment)
        if task.retry and not runner.can_run(task):
            raise InvalidInput(
                f"{task.title} cannot be found again after a restart, so it cannot be retried.",
                hint="A function must be of a module, or have @background, and get arguments that are JSON; "
                "a command must not need env=…, whose values are not stored.",
            )
        if not_before is not None:
            _check_storable(task, runner)
        prepared = await self._prepare(runner, task)
        if not_before is not None:
            then = self._delay
        else:
            then = self._admission.reserve(assignment) if starts else self._enqueue(assignment)
        await self._record.create(task, prepared(then) if prepared else then)
        return task

    def _batch_of(self, order: Order, options: Options) -> str | None:
        """A watch has a batch of its own: what runs beside it should not be counted with it."""
        alone = options.batch is None and order.work.kind == WATCH
        return batch_id(entropy(ENTROPY)) if alone else options.batch

    def _not_before(self, options: Options) -> DueTime | None:
        if options.at is None and options.delay is None:
            return None
        clock = self._record.clock
        due = due_time(options.at, options.delay, clock.now(), clock.uptime())
        self._delayed.check_room()
        return due

    def _delay(self, task: Task, done: bool) -> None:
        if done:
            self._delayed.add(task)

    def _place_of(self, order: Order, options: Options) -> str:
        """The pool that the work is for; empty is here. A function of a connected process is its own."""
        wanted = options.place
        if wanted is None and not self._settings.place:
            return ""
        if wanted is None:
            wanted = HERE if options.executor else place_of(order.work, self._settings.place)
        place = self._placing.check(check_place(wanted))
        if place and (order.work.kind not in PLACED or options.executor):
            raise InvalidInput(
                f"{order.work.kind} tasks run at the owner of the ledger, not at {place!r}.",
                hint="Place functions and commands; leave place out for all else.",
                code="not_placeable",
            )
        return place

    async def _forking(self, thread: str, order: Order, options: Options) -> Order:
        """The conversation that it goes on from, kept with the order: a fork never starts blank."""
        given = dict(cast("dict[str, Any]", order.work.input or {}))
        if options.fork_of is not None:
            source = await self._record.current(options.fork_of)
            if source.thread != thread:
                raise NotFound.task(options.fork_of)
            session = self._session_of(source)
            if session is None:
                raise Refused(
                    f"Task {source.id} has no conversation to fork.",
                    code="nothing_to_fork",
                    hint="Wait until it has begun; or give the conversation as context=[…].",
                )
            given["fork_of"] = {"task": source.id, "session": session, "agent": source.work.name}
        elif options.context:
            given["context"] = seed(options.context)
        elif options.session is not None:
            given["fork_of"] = {"task": "", "session": options.session, "agent": ""}
        else:
            kept = await self._record.store.transcript(thread)
            lines = [Line(role=one.message.role, text=one.message.text) for one in kept if _is_said(one)]
            if lines:
                given["context"] = seed(lines)
        check_input(given, "An agent's prompt, input and context")
        return order._replace(work=replace(order.work, input=given))

    def _session_of(self, task: Task) -> str | None:
        runner = self._engine.runner(task.work.kind)
        return cast("TalkingRunner", runner).session_of(task) if runner.abilities.talk else None

    async def _prepare(self, runner: Runner, task: Task) -> Callable[[Then], Then] | None:
        """Lasting work leaves its trace before it is recorded; if it is not recorded, no trace. Placed work
        leaves its own at its worker."""
        if not runner.abilities.adopt or task.place:
            return None
        if task.id in self._preparing or await self._record.store.load(task.id) is not None:
            raise Duplicate.of_id(task.id)
        lasting = cast("LastingRunner", runner)
        lasting.prepare(task)
        self._preparing.add(task.id)

        def with_trace(then: Then) -> Then:
            def created(task: Task, done: bool) -> None:
                self._preparing.discard(task.id)
                if not done:
                    lasting.forget(task)
                then(task, done)

            return created

        return with_trace

    def _enqueue(self, assignment: Assignment) -> Then:
        self._admission.coming += 1
        context = copy_context()  # it will run in its caller's, not in that of whoever frees the slot

        def created(task: Task, done: bool) -> None:
            self._admission.coming -= 1
            if done:
                self._admission.enqueue(replace(assignment, task=task, context=context))

        return created

    async def resume(self, task: Task, prompt: str, options: Options) -> Task:
        options = check_fields(options)
        prompt = check_text(prompt, "prompt", MAX_PROMPT)
        if options.at is not None or options.delay is not None:
            raise InvalidInput(
                "A resume cannot be delayed.",
                hint="Ask to be reminded: thread.remind().",
                code="not_delayable",
            )
        runner = self._engine.runner(task.work.kind)
        asked = options.timeout
        if asked is None:
            asked = _standing(runner, task.work.name).timeout
        timeout = resolve(asked, self._settings.default_timeout, self._settings.max_timeout)
        if not task.ended:
            raise _busy(task)
        if not runner.abilities.resume:
            raise NotResumable(
                f"{task.work.kind} tasks have no conversation to go on with.",
                code="not_resumable",
                hint="Start a new task.",
            )
        if not prompt.strip():
            raise InvalidInput("prompt must say something.", hint="Say what it is to do next.")
        if task.session is None:
            raise NotResumable(
                "This task never had a session to go on with.",
                code="session_gone",
                hint="Start a new task instead.",
            )
        if not await runner.exists(task):
            raise NotResumable(
                "The session of this task is gone.", code="session_gone", hint="Start a new task instead."
            )
        self._admission.is_open(lane_of(task), on_limit=options.on_limit)  # or raises
        run = Run(
            number=task.run.number + 1,
            queued_at=self._record.clock.now(),
            timeout=timeout.seconds,
            timeout_note=timeout.note,
            prompt=prompt,
        )
        return await self._next_run(task, run)

    async def go_on(self, task: Task) -> None:
        """The follow-up that was said while it ran is the next run, whatever the limits: it was accepted.
        A session that is gone is that run's error, and told."""
        run = Run(
            number=task.run.number + 1,
            queued_at=self._record.clock.now(),
            timeout=task.run.timeout,
            timeout_note=task.run.timeout_note,
            prompt=task.follow_up,
        )
        with suppress(NotResumable):  # somebody has resumed it meanwhile, with a prompt of its own
            await self._next_run(task, run)

    async def _next_run(self, task: Task, run: Run) -> Task:
        enqueue = self._enqueue(Assignment(task))
        facts = Facts(next_run=run, batch=self._batches.of_resumed(task))
        moved = await self._record.move(task.id, Move.RESUME, facts, enqueue)
        if moved.disposition is not Disposition.APPLIED:
            raise _busy(moved.task)
        return self._record.live.get(task.id, moved.task)

    def new_task(
        self,
        thread: str,
        order: Order,
        options: Options,
        runner: Runner,
        batch: str,
        parent: Parent | None,
        *,
        running: bool,
        place: str | None = None,
        not_before: DueTime | None = None,
    ) -> Task:
        """`place`: None is here, whatever the options say; one that names a pool is then refused, and so is
        a delay."""
        if place is None and (options.at is not None or options.delay is not None):
            raise InvalidInput(
                "Work that somebody waits for, or that runs already, cannot be delayed.",
                hint="Leave at and delay out, or hand the work off with start().",
                code="not_delayable",
            )
        if place is None and options.place not in (None, HERE):
            raise InvalidInput(
                "Work that somebody waits for, or that runs already, runs here.",
                hint="Leave place out, or hand the work off with start().",
                code="not_placeable",
            )
        now = self._record.clock.now()
        standing = _standing(runner, order.work.name)
        wanted = standing.timeout if options.timeout is None else options.timeout
        timeout = resolve(wanted, self._settings.default_timeout, self._settings.max_timeout)
        depth = 0 if parent is None else parent.depth + 1
        session = None if options.fork else options.session
        self._admission.check_depth(depth)
        return Task(
            id=new_id() if options.id is None else options.id,
            thread=thread,
            work=order.work,
            status=Status.RUNNING if running else Status.QUEUED,
            created_at=now,
            updated_at=now,
            run=Run(
                queued_at=now,
                started_at=now if running else None,
                timeout=timeout.seconds,
                timeout_note=timeout.note,
                not_before=not_before,
                on_limit="" if not_before is None else options.on_limit or "",
            ),
            description=options.description,
            batch=batch,
            tool_call_id=options.tool_call_id,
            message_id=options.message_id,
            parent=None if parent is None else parent.id,
            depth=depth,
            session=session,
            launched_in=session,
            forked=options.fork,
            notify=options.notify,
            retry=options.retry,
            inline=options.inline,
            meta=options.meta,
            executor=options.executor,
            place=place or "",
            children=allowed_below(parent, standing.depth),
            above=None if parent is None else parent.agent,
        )


def new_id() -> str:
    return task_id(entropy(ENTROPY))


def _standing(runner: Runner, name: str) -> Standing:
    """Defaults for an agent, wherever it is started."""
    return cast("TalkingRunner", runner).standing(name) if runner.abilities.talk else Standing()


def _check_storable(task: Task, runner: Runner) -> None:
    """A delayed start is begun from what the ledger has of it, whoever has the ledger then."""
    if task.executor is None and runner.can_run(task):
        return
    raise InvalidInput(
        f"{task.title} cannot be started later: not all that it needs is stored.",
        hint="A function must be of a module of the owner of the ledger, or have @background, and get "
        "arguments that are JSON; a command must not need env=… or binary stdin, which are not stored.",
        code="not_storable",
    )


def _is_said(entry: Entry) -> bool:
    """Entries that a host keeps beside the conversation, in roles of its own, are not messages."""
    return entry.notice is not None or entry.message.role in ROLES


def _busy(task: Task) -> NotResumable:
    if task.resumed:
        return NotResumable(
            "This task is currently being resumed.",
            code="being_resumed",
            hint="Wait until that run has ended.",
        )
    return NotResumable(
        f"This task is {task.status}; only an ended task can be resumed.",
        code="still_active",
        hint="Wait until it has ended.",
    )
