"""The runtime gives its stages the shape of ports.tasks. It decides nothing itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from meantime.kernel.argument_checks import check_all, check_scope
from meantime.kernel.constraints import check_count, check_flag
from meantime.kernel.errors import Closed, InvalidInput, NotFound, RetryNotSupported
from meantime.kernel.ids import check_id
from meantime.kernel.inbox_page import InboxPage
from meantime.kernel.lifecycle import Status
from meantime.kernel.limits import Limits, PluginDefaults
from meantime.kernel.lines import Line, LinePage
from meantime.kernel.model import BatchCount, Chunk, Event, Json, Output, Task
from meantime.kernel.notices import Notice
from meantime.kernel.overview import Overview
from meantime.kernel.row_facts import RowFacts
from meantime.kernel.stats import Statistics
from meantime.kernel.watches import KIND
from meantime.kernel.work import Order, ToolInfo
from meantime.ports.event_loop import check_loop
from meantime.ports.host import Host
from meantime.ports.runner import ServedRunner
from meantime.ports.store import Entry, Query, Settled, check_entry
from meantime.ports.task_details import Attendance, TaskDetails
from meantime.ports.tasks import Answer, CancelAnswer, OpenTurn, Options, Page, ThreadCount

from .foreground_call import is_a_task
from .reminder_verbs import ReminderVerbs


class Runtime(ReminderVerbs):
    def _check_open(self) -> None:
        if not self._open:
            raise Closed
        check_loop(self._loop)

    # -- starting

    async def start(self, thread: str, order: Order, options: Options) -> Task:
        self._check_open()
        if order.work.kind == KIND:
            is_delayed = options.delay is not None or options.at is not None
            order = await self.watched.order(order, is_delayed=is_delayed)
        return await self.submission.start(check_id(thread, "thread"), order, options)

    async def call(self, thread: str, order: Order, options: Options, threshold: float | None) -> Answer:
        self._check_open()
        return await self.calling.call(check_id(thread, "thread"), order, options, threshold)

    async def calls(self, thread: str | None) -> Sequence[Task]:
        self._check_open()
        return self.calling.calls(check_scope(thread))

    async def promote(self, ref: str, thread: str | None) -> Task:
        self._check_open()
        task = await self.calling.promote(ref, check_scope(thread))
        if task is None:
            raise is_a_task(await self.looking.find(ref, thread))
        return task

    async def adopt(self, thread: str, order: Order, options: Options, running_for: float) -> Task:
        self._check_open()
        return await self.adoption.adopt(check_id(thread, "thread"), order, options, running_for)

    async def resume(self, ref: str, thread: str | None, prompt: str, options: Options) -> Task:
        self._check_open()
        if options.fork:
            raise InvalidInput(
                "fork and resume exclude each other.", hint="Choose one.", code="fork_and_resume"
            )
        return await self.submission.resume(await self.looking.find(ref, thread), prompt, options)

    async def retry(self, ref: str, thread: str | None) -> Task:
        await self.looking.find(ref, thread)
        raise RetryNotSupported

    # -- looking

    async def get(self, ref: str, thread: str | None) -> Task:
        self._check_open()
        return await self.looking.get(ref, thread)

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
        self._check_open()
        return await self.looking.list(
            thread, statuses, batch=batch, history=history, limit=limit, offset=offset
        )

    async def page(self, query: Query, *, counted: bool = True, most: int | None = None) -> Page:
        self._check_open()
        return await self.looking.page(query, counted=counted, most=most)

    async def row_facts(self, ids: Sequence[str]) -> Sequence[RowFacts]:
        self._check_open()
        return await self.rows.facts(check_all(ids, str, "ids"))

    async def overview(self, thread: str | None) -> Overview:
        self._check_open()
        return await self.tally.overview(check_scope(thread))

    async def runs_of(self, ref: str, thread: str | None) -> Sequence[Task]:
        task = await self.get(ref, thread)
        return [*await self.store.runs(task.id), task]

    async def details(self, ref: str, thread: str | None) -> TaskDetails:
        return await self.details_of.of(await self.get(ref, thread))

    async def position(self, ref: str, thread: str | None) -> int | None:
        return self.admission.position(await self.get(ref, thread))

    async def output(
        self, ref: str, thread: str | None, *, wait: float = 0, turn: str | None = None
    ) -> Output:
        self._check_open()
        output = await self.looking.output(ref, thread, wait=wait)
        if turn is not None and output.task.ended:
            await self.announcing.read(turn, output.task)
        return output

    async def read(self, ref: str, thread: str | None, stream: str, offset: int, limit: int) -> Chunk:
        self._check_open()
        return await self.work_io.read(ref, thread, stream, offset, limit)

    async def tail(self, ref: str, thread: str | None, stream: str, lines: int, limit: int) -> Chunk:
        self._check_open()
        return await self.work_io.tail(ref, thread, stream, lines, limit)

    async def wait_output(self, ref: str, thread: str | None, stream: str, seen: int) -> None:
        self._check_open()
        await self.work_io.wait_output(ref, thread, stream, seen)

    async def send(self, ref: str, thread: str | None, data: str | bytes, *, eof: bool = False) -> str:
        self._check_open()
        return await self.work_io.send(ref, thread, data, eof=eof)

    async def notify(self, ref: str, thread: str | None, text: str) -> str:
        self._check_open()
        return await self.run_notices.notify(await self.looking.find(ref, thread), text)

    async def lines(
        self,
        ref: str,
        thread: str | None,
        *,
        kinds: Sequence[str] = (),
        roles: Sequence[str] = (),
        last: int | None = None,
    ) -> Sequence[Line]:
        self._check_open()
        return await self.work_io.lines(ref, thread, kinds, roles, last)

    async def line_page(
        self, ref: str, thread: str | None, *, offset: int = 0, most: int = 1 << 20
    ) -> LinePage:
        self._check_open()
        return await self.work_io.line_page(ref, thread, offset, most)

    async def answer(
        self,
        ref: str,
        thread: str | None,
        text: str,
        *,
        scope: str | None = None,
        by: str = "user",
        question: str | None = None,
    ) -> Task:
        self._check_open()
        return await self.asking.answer(await self.looking.find(ref, thread), text, scope, by, question)

    async def result(self, ref: str, thread: str | None) -> Json:
        self._check_open()
        return await self.looking.result(ref, thread)

    async def wait(
        self,
        refs: Sequence[str],
        thread: str | None,
        *,
        until: str = "all",
        timeout: float | None = None,
        turn: str | None = None,
    ) -> Sequence[Task]:
        self._check_open()
        tasks = await self.looking.wait(refs, thread, until=until, timeout=timeout)
        if turn is not None:
            for task in tasks:
                if task.ended:
                    await self.announcing.read(turn, task)
        return tasks

    async def batch(self, id: str, thread: str | None) -> BatchCount:
        check_scope(thread)
        count = await self.batches.count(check_id(id, "batch"), thread)
        if count is None:
            raise NotFound(
                f"No batch {id!r} in this thread.", hint="List the thread's tasks to see their batches."
            )
        return count

    # -- stopping, clearing

    async def cancel(
        self,
        ref: str,
        thread: str | None,
        *,
        by: str = "user",
        reason: str = "",
        wait: bool = False,
        turn: str | None = None,
    ) -> CancelAnswer:
        self._check_open()
        answer = await self.stopping.cancel(ref, thread, by, reason, wait=wait)
        if turn is not None and answer.task.ended:
            await self.announcing.read(turn, answer.task)
        return answer

    async def cancel_all(
        self, thread: str, *, batch: str | None = None, descendants: bool = False, by: str = "user"
    ) -> Sequence[CancelAnswer]:
        self._check_open()
        check_flag(descendants, "descendants")
        batch = None if batch is None else check_id(batch, "batch")
        return await self.stopping.cancel_all(check_id(thread, "thread"), batch, by, descendants=descendants)

    async def clear(
        self,
        thread: str,
        refs: Sequence[str] | None = None,
        *,
        batch: str | None = None,
        older_than: float = 0.0,
    ) -> int:
        self._check_open()
        return await self.clearing.clear(check_id(thread, "thread"), refs, batch, older_than)

    async def purge(self, refs: Sequence[str]) -> int:
        self._check_open()
        gone = await self.clearing.purge(refs)
        self.observing.wake()
        await self.waking.refresh()  # what was deleted is not to be told any more
        return gone

    # -- telling

    async def reminder(self, thread: str, *, turn: str | None = None) -> str:
        self._check_open()
        return await self.announcing.reminder(check_id(thread, "thread"), turn)

    async def open_turn(self, thread: str, *, lease: float | None, limit: int) -> OpenTurn:
        self._check_open()
        return await self.announcing.open_turn(check_id(thread, "thread"), lease=lease, limit=limit)

    async def boundary(self, turn: str, *, limit: int, thread: str | None = None) -> Sequence[Notice]:
        check_loop(self._loop)
        return await self.announcing.boundary(turn, limit=limit, thread=thread)

    async def ack(
        self,
        turn: str,
        notices: Sequence[str],
        entries: Sequence[Entry],
        reads: Sequence[str] = (),
        *,
        thread: str | None = None,
    ) -> Settled:
        check_loop(self._loop)
        return await self.announcing.ack(turn, notices, entries, reads, thread)

    async def renew(self, turn: str, *, thread: str | None = None) -> None:
        check_loop(self._loop)
        await self.announcing.renew(turn, thread)

    async def close_turn(self, turn: str, *, failed: bool, thread: str | None = None) -> None:
        check_loop(self._loop)
        await self.announcing.close_turn(turn, failed=failed, thread=thread)

    async def wait_wake(self, thread: str, seen: int) -> int:
        self._check_open()
        check_count(seen, "seen", -1, 1 << 62)
        return await self.waking.wait(check_id(thread, "thread"), seen)

    def has_empty_inbox(self, thread: str) -> bool:
        return False  # a turn says it here, without a request

    async def unpark(self, thread: str, notices: Sequence[str] | None = None) -> int:
        check_loop(self._loop)
        return await self.announcing.unpark(check_id(thread, "thread"), notices)

    async def notices(
        self, thread: str | None, states: Iterable[str], *, limit: int = 1_000, offset: int = 0
    ) -> Sequence[Notice]:
        check_loop(self._loop)
        return await self.announcing.notices(check_scope(thread), states, limit, offset)

    async def count_notices(self, thread: str | None, states: Iterable[str]) -> int:
        check_loop(self._loop)
        return await self.announcing.count_notices(check_scope(thread), states)

    async def attendance(self, thread: str) -> Attendance:
        check_loop(self._loop)
        return self.announcing.attendance(check_id(thread, "thread"))

    async def inbox(self, thread: str, *, before: int | None = None, limit: int = 50) -> InboxPage:
        check_loop(self._loop)
        return await self.announcing.inbox(check_id(thread, "thread"), before, limit)

    def attach(self, thread: str, host: Host) -> None:
        self._check_open()
        self.pushing.attach(check_id(thread, "thread"), host)

    def detach(self, thread: str) -> None:
        self.pushing.detach(thread)

    async def append(self, thread: str, entries: Sequence[Entry]) -> None:
        check_loop(self._loop)
        await self.store.append(
            check_id(thread, "thread"), [check_entry(entry) for entry in check_all(entries, Entry, "entries")]
        )

    async def transcript(self, thread: str) -> Sequence[Entry]:
        check_loop(self._loop)
        return await self.store.transcript(check_id(thread, "thread"))

    async def has_entry(self, thread: str, notice: str) -> bool:
        check_loop(self._loop)
        return await self.store.has_entry(check_id(thread, "thread"), check_id(notice, "notice"))

    # -- for people

    async def events(self, after: int, limit: int) -> Sequence[Event]:
        check_loop(self._loop)
        return await self.observing.events(after, limit)

    async def wait_events(self, after: int) -> None:
        check_loop(self._loop)
        await self.observing.wait_events(after)

    async def last_event(self) -> int:
        check_loop(self._loop)
        return await self.observing.last_event()

    async def threads(self, limit: int) -> Sequence[ThreadCount]:
        self._check_open()
        return await self.looking.threads(limit)

    async def thread(self, id: str) -> ThreadCount:
        self._check_open()
        return await self.looking.thread(check_id(id, "thread"))

    async def statistics(self, thread: str | None) -> Statistics:
        self._check_open()
        return await self.store.statistics(check_scope(thread))

    async def stats(self) -> dict[str, int]:
        check_loop(self._loop)
        slots = self.admission.slots
        counts = dict(await self.store.counts())
        return {
            **counts,
            "slots.running": slots.running,
            "slots.waiting": slots.waiting,
            "reminders": self.reminding.pending,
            "threads.resting": len(self.waking.resting()),
            **self.placing.counters(),
        }

    async def tools(self, server: str | None) -> Sequence[ToolInfo]:
        self._check_open()
        named = None if server is None else check_id(server, "server")
        return await cast("ServedRunner", self.engine.runner("tool")).tools(named)

    async def set_limits(self, limits: Limits) -> None:
        check_loop(self._loop)
        self.admission.set_limits(limits)

    def limits(self) -> Limits:
        return self.admission.slots.limits

    def check_agent(self, name: str) -> None:
        self.looking.check_agent(name)

    def plugin_defaults(self) -> PluginDefaults:
        return self.settings.plugins

    def now(self) -> float:
        return self.record.clock.now()
