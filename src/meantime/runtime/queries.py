"""queries: get, list, output, wait. Reading never changes what a thread is told, unless its turn says so."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from meantime.kernel.argument_checks import as_number, check_all, check_scope, shown
from meantime.kernel.change import Change
from meantime.kernel.constraints import check_choice, check_count, check_flag, check_members
from meantime.kernel.errors import (
    Ambiguous,
    Closed,
    InvalidInput,
    LedgerDamaged,
    NotFound,
    StillRunning,
    TaskCancelled,
    TaskEnded,
    TaskFailed,
    TaskLost,
    TaskTimedOut,
)
from meantime.kernel.ids import check_id
from meantime.kernel.lifecycle import ACTIVE, ENDED, Status
from meantime.kernel.model import (
    Cancelled,
    Completed,
    Failed,
    Json,
    Lost,
    Outcome,
    Output,
    Spill,
    Task,
    TimedOut,
)
from meantime.kernel.notice_sources import parse_notice_id
from meantime.kernel.notices import without_result
from meantime.kernel.payloads import preview
from meantime.ports.engine import Engine
from meantime.ports.runner import SpeakingRunner, TalkingRunner
from meantime.ports.store import Committed, Owed, Query, Sort
from meantime.ports.tasks import Page, ThreadCount

from .record import Record
from .run import Runs
from .settings import Settings

MAX_LISTED = 1_000
MAX_THREADS = 100_000
_ERRORS: dict[type, type[TaskEnded]] = {
    Failed: TaskFailed,
    Cancelled: TaskCancelled,
    TimedOut: TaskTimedOut,
    Lost: TaskLost,
}


class Looking:
    def __init__(self, record: Record, runs: Runs, engine: Engine, settings: Settings) -> None:
        self._record = record
        self._engine = engine
        self._runs = runs
        self._settings = settings
        self._waiting: dict[str, list[asyncio.Future[Task | None]]] = {}
        self._closed = False

    async def find(self, ref: str, thread: str | None) -> Task:
        """An exact id, otherwise its session's, otherwise a unique prefix, otherwise the id of one of its
        notices: a model uses the id that it was told. Another thread's task is not found."""
        ref, thread = check_id(ref, "task id"), check_scope(thread)
        if task := await self._exact(ref, thread) or await self._in_session(ref, thread):
            return task
        found = await self._record.store.find(ref, thread, 11)
        if len(found) > 1:
            raise Ambiguous(ref, [task.id for task in found])
        if found:
            return self._record.live.get(found[0].id, found[0])
        told = parse_notice_id(ref)
        if told and (task := await self._exact(told.of, thread)) and 0 < told.run <= task.run.number:
            return task
        raise NotFound.task(ref, thread)

    async def _exact(self, id: str, thread: str | None) -> Task | None:
        task = self._record.live.get(id) or await self._record.store.load(id)
        return task if task is not None and thread in (None, task.thread) else None

    async def _in_session(self, session: str, thread: str | None) -> Task | None:
        """The newest, where a session was used by several."""
        found = await self._record.store.list(Query(thread, session=session, hidden=True, limit=1))
        return self._record.live.get(found[0].id, found[0]) if found else None

    async def get(self, ref: str, thread: str | None) -> Task:
        return self._runs.seen(await self.find(ref, thread))

    async def list(
        self,
        thread: str | None,
        statuses: Iterable[Status] | None,
        *,
        batch: str | None = None,
        history: bool = False,
        limit: int = 50,
        offset: int = 0,
    ) -> Sequence[Task]:
        """Newest first. A thread lists what is active and its newest endings; `history` lists all."""
        wanted = ACTIVE if statuses is None else _statuses(statuses)
        thread = check_scope(thread)
        batch = None if batch is None else check_id(batch, "batch")
        check_flag(history, "history")
        _check_part(limit, offset)
        if history or thread is None or batch is not None:
            query = Query(thread, wanted, batch, hidden=history, limit=limit, offset=offset)
            return self._as_they_are(await self._record.store.list(query))
        active = [task for task in self.active(thread) if task.status in wanted]
        ended: Sequence[Task] = ()
        if wanted & ENDED:
            hot = await self._record.store.hot(thread, self._settings.retention.hot)
            ended = [task for task in hot if task.status in wanted]
            known = {task.id for task in ended}  # the store may know of an ending before we heard of it
            active = [task for task in active if task.id not in known]
        return [*reversed(active), *ended][offset : offset + limit]

    async def page(self, query: Query, *, counted: bool, most: int | None = None) -> Page:
        _check_part(query.limit, query.offset)
        if most is not None:
            check_count(most, "most", 1, 1 << 62)
        store = self._record.store
        found = self._as_they_are(await store.list(query))
        is_full = len(found) >= query.limit and query.sort is Sort.NEWEST
        next = await store.place(found[-1].id) if is_full else None
        if not counted or (query.offset == 0 and query.before is None and len(found) < query.limit):
            return Page(found, len(found), next)
        if most is not None and _is_of_all(query):
            return Page(found, len(self._record.live) + sum((await store.ended_counts()).values()), next)
        total = await store.count(query, most)
        return Page(found, total, next, exact=most is None or total < most)

    def _as_they_are(self, found: Sequence[Task]) -> Sequence[Task]:
        """The store is right about an ending that it knows before we are notified."""
        known = [self._record.live.get(task.id, task) if not task.ended else task for task in found]
        return [self._runs.seen(task) for task in known]

    def active(self, thread: str) -> list[Task]:
        return [self._runs.seen(task) for task in self._record.of_thread.get(thread, {}).values()]

    async def threads(self, limit: int) -> Sequence[ThreadCount]:
        check_count(limit, "limit", 1, MAX_THREADS)
        # Before the notices: a task that ends meanwhile may be counted as both, but not as neither.
        active = {thread: list(tasks.values()) for thread, tasks in self._record.of_thread.items()}
        owed = await self._record.store.owed(None, MAX_THREADS)
        found = [_counted(one, active.get(one.thread, ())) for one in owed]
        return sorted(found, key=lambda one: -(one.last_event_at or 0.0))[:limit]

    async def thread(self, id: str) -> ThreadCount:
        active = list(self._record.of_thread.get(id, {}).values())  # first, as in `threads`
        return _counted(next(iter(await self._record.store.owed(id, 1)), Owed(id)), active)

    async def output(self, ref: str, thread: str | None, *, wait: float = 0) -> Output:
        wait = _check_wait(wait)
        task = await self.get(ref, thread)
        if wait and not task.ended:
            await self.wait([task.id], thread, timeout=min(wait, self._settings.max_wait))
            task = await self.get(task.id, thread)
        if task.ended and thread is not None and task.run.retrieved_at is None:
            task = await self._retrieve(task)
        return output_of(task) if task.ended else await self._so_far(task)

    async def _so_far(self, task: Task) -> Output:
        """The output of running work until now: as much of its end as would be shown of the whole."""
        output = output_of(task)
        runner = self._engine.runner(task.work.kind)
        if task.status is Status.QUEUED or not runner.abilities.output:
            return output
        most = task.inline or self._settings.inline
        lines, size = max(1, most.max_lines), max(1, most.max_bytes)
        said = await cast("SpeakingRunner", runner).tail(task, "both", lines, size)
        return replace(output, value=said.text)

    async def _retrieve(self, task: Task) -> Task:
        """The time at which an agent first read the ending (I16)."""
        now = self._record.clock.now()

        def fields(task: Task) -> dict[str, Any] | None:
            if not task.ended or task.run.retrieved_at is not None:
                return None
            return {"run": replace(task.run, retrieved_at=now)}

        return await self._record.amend(task.id, fields)

    async def result(self, ref: str, thread: str | None) -> Json:
        task = await self.find(ref, thread)
        outcome = task.outcome
        if isinstance(outcome, Completed):
            spill = outcome.spill
            if spill is None or spill.of_message:
                return outcome.result
            return await self._whole(task, spill)
        if outcome is None:
            raise StillRunning(f"Task {task.id} is still {task.status}.", hint="Wait longer, or cancel it.")
        raise _ERRORS[type(outcome)](without_result(task, outcome), task)

    def check_agent(self, name: str) -> None:
        """A runner of somebody else's may take any name."""
        runner = self._engine.runner("agent")
        if runner.abilities.talk:
            cast("TalkingRunner", runner).standing(name)

    async def _whole(self, task: Task, spill: Spill) -> Json:
        runner = self._engine.runner(task.work.kind)
        try:
            if spill.of_runner:
                payload = await cast("SpeakingRunner", runner).whole(spill.path)
            else:
                payload = await self._record.store.unspill(spill.path)
        except OSError as problem:
            raise _bad_payload(task, spill, problem.strerror or str(problem)) from problem
        if spill.crc is not None and zlib.crc32(payload) != spill.crc:
            raise _bad_payload(task, spill, "its checksum does not match")
        return payload.decode("utf-8", "replace") if spill.is_text else msgspec.json.decode(payload)

    async def wait(
        self, refs: Sequence[str], thread: str | None, *, until: str = "all", timeout: float | None = None
    ) -> Sequence[Task]:
        """Returns the tasks as they are when all, or any, have ended, or the time is over."""
        until = check_choice(until, "until", ("all", "any"))
        timeout = None if timeout is None else _check_wait(timeout)
        named = check_all(refs, str, "what is waited for")
        ids = list(dict.fromkeys([(await self.find(ref, thread)).id for ref in named]))
        need = 1 if until == "any" else len(ids)
        active = [id for id in ids if id in self._record.live]
        need -= len(ids) - len(active)
        endings = {id: self._ended(id) for id in active} if need > 0 else {}
        if endings:
            await self._first(need, endings, timeout)
        if len(ids) == 1 and (ended := self._just_ended(endings)) is not None:
            return [ended]
        return [await self.get(id, None) for id in ids]

    def _just_ended(self, endings: dict[str, asyncio.Future[Task | None]]) -> Task | None:
        """A task that was waited for alone need not be looked up, unless it runs again by now."""
        for id, ending in endings.items():
            if ending.done() and id not in self._record.live:
                return ending.result()
        return None

    async def _first(
        self, need: int, pending: dict[str, asyncio.Future[Task | None]], timeout: float | None
    ) -> None:
        """Counts the endings: to wait for each in turn would cost the square of their number."""
        enough: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        left = need

        def ended(_: object = None) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                over()

        def over() -> None:
            if not enough.done():
                enough.set_result(None)

        for future in pending.values():
            future.add_done_callback(ended)
        alarm = None if timeout is None else self._record.clock.call_later(timeout, over)
        try:
            await enough
            if self._closed:
                raise Closed
        finally:
            if alarm is not None:
                alarm.cancel()
            for id, future in pending.items():
                self._forget(id, future)

    def _ended(self, id: str) -> asyncio.Future[Task | None]:
        future: asyncio.Future[Task | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(id, []).append(future)
        return future

    def _forget(self, id: str, future: asyncio.Future[Task | None]) -> None:
        waiting = self._waiting.get(id)
        if waiting and future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._waiting[id]

    def close(self) -> None:
        """Nobody waits for ever: queued tasks stay queued, and their waiters are told that we closed."""
        self._closed = True
        waiting, self._waiting = self._waiting, {}
        for futures in waiting.values():
            for future in futures:
                future.set_result(None)

    def on_commit(self, change: Change, committed: Committed) -> None:
        if change.ends:
            for future in self._waiting.pop(change.task.id, ()):
                future.set_result(change.task)


def _statuses(given: Iterable[str]) -> frozenset[Status]:
    return frozenset(check_members(given, "statuses", Status, "status"))


def _is_of_all(query: Query) -> bool:
    """Whether it asks for everything that is not cleared: how much that is, is known."""
    return replace(query, limit=1, offset=0, before=None, sort=Sort.NEWEST) == Query(limit=1)


def _check_part(limit: object, offset: object) -> None:
    whole = type(limit) is int and type(offset) is int
    if not whole or not 0 < cast("int", limit) <= MAX_LISTED or not 0 <= cast("int", offset) < 1 << 62:
        raise InvalidInput(f"limit must be from 1 to {MAX_LISTED}, and offset at least 0.")


def _bad_payload(task: Task, spill: Spill, why: str) -> LedgerDamaged:
    text = f"The payload of task {task.id} in {spill.path} cannot be read: {why}."
    return LedgerDamaged(text, hint="A backup may have it. `meantime audit` names every such payload.")


def _check_wait(seconds: object) -> float:
    number = as_number(seconds)
    if number is None or not 0 <= number < 1e10:
        raise InvalidInput(
            f"A wait of {shown(seconds)} is not possible.", hint="Give seconds from 0 up, or None."
        )
    return number


def _counted(owed: Owed, active: Sequence[Task]) -> ThreadCount:
    moments = [owed.ended_at, *(task.updated_at for task in active)]
    last = max((at for at in moments if at is not None), default=None)
    return ThreadCount(owed.thread, len(active), owed.unread, owed.leased, owed.parked, last)


def output_of(task: Task) -> Output:
    outcome = task.outcome
    match outcome:
        case None:
            return Output(task, emitted=task.run.emitted, partial=True)
        case Completed():
            return Output(task, _shown(outcome, outcome.result), outcome.emitted_vars, spill=outcome.spill)
        case _:
            value = _shown(outcome, outcome.partial)
            return Output(task, value, outcome.emitted_vars, partial=True, spill=outcome.spill)


def _shown(outcome: Outcome, inline: Json) -> Json:
    spill = outcome.spill
    return inline if spill is None or spill.of_message else preview(spill)
