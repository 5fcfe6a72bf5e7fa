"""Runs watches. A watch keeps in its cursor what it has seen, so a later owner runs it again from there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from meantime.kernel.errors import InvalidInput, LimitReached, MeantimeError, NotFound, Refused
from meantime.kernel.model import Failed, Task
from meantime.kernel.outcomes import Report
from meantime.kernel.payloads import Jsonable
from meantime.kernel.watches import KIND, ending_of, spec_of, summary_of
from meantime.ports.clock import Alarm, Clock, age
from meantime.ports.commands import Commands
from meantime.ports.runner import Abilities, Assignment, Context, Leftovers
from meantime.ports.watch_ledger import WatchLedger
from meantime.system.platform import FolderEvents

from .expressions import expression
from .file_states import FileWatch
from .file_threads import FileCalls, FileThreads, Hangs
from .findings import Findings
from .log_scan import DELETED, LogScan, LogWatch
from .network_states import PortState, UrlState
from .process_states import CommandState, LedgerState, ProcessState, folder_of
from .state_watch import RunningWatch, StateWatch

MOST = 10_000  # watches at once
STOPPED = "until it was stopped"


class WatchRunner:
    kind = KIND
    abilities = Abilities(adopt=True)

    def __init__(self, clock: Clock, commands: Commands, *, lasts: bool) -> None:
        """`commands`: for those that are run again and again; they end with us. `lasts`: whether the ledger
        remembers watches; otherwise they end with us, too."""
        self._clock = clock
        self._commands = commands
        self._are_open = False
        self._events = FolderEvents()
        self._threads = FileThreads(clock)
        self._lasts = lasts
        self._ledger: WatchLedger | None = None
        self._scans: dict[tuple[str, str], LogScan] = {}
        self._running: dict[str, tuple[asyncio.Task[object], RunningWatch]] = {}

    def join(self, ledger: WatchLedger) -> None:
        self._ledger = ledger

    # -- life

    def open(self) -> None: ...

    async def close(self) -> None:
        for scan in tuple(self._scans.values()):
            scan.close()
        self._events.close()
        self._threads.close()
        if self._are_open:
            await self._commands.close()

    def check(self, task: Task, assignment: Assignment) -> None:
        if assignment.foreground:
            raise InvalidInput("A watch is not waited for.", hint="Write thread.start(Watch(…)).")
        spec = spec_of(task)
        for name, text in (("match", spec.match), ("until", spec.until)):
            if text:
                expression(text, name)
        if len(self._running) >= MOST:
            raise LimitReached(
                f"{MOST} watches run, which is the most.", running=len(self._running), limit=MOST
            )

    async def is_folder(self, path: str) -> bool:
        calls = FileCalls(path, self._threads)
        try:
            return await calls.make(lambda: os.path.isdir(path))
        except Hangs as problem:
            calls.close(lambda: None)
            raise Refused(str(problem), code="no_answer", hint="Start it when that answers again.") from None

    def can_run(self, task: Task) -> bool:
        return True

    async def exists(self, task: Task) -> bool:
        return False

    # -- one run

    async def run(self, assignment: Assignment, context: Context) -> Report:
        task, me = assignment.task, asyncio.current_task()
        assert me is not None
        assert self._ledger is not None
        looking = self._look(Findings(task, self._ledger, self._clock))
        self._running[task.id] = (me, looking)
        deadline = self._arm(task, looking)
        try:
            why, last = await looking.ending()
        except asyncio.CancelledError:
            if me.cancelling() > context.stops:
                return Report(detached=True)  # we leave it to the next owner
            context.emit("matches", looking.findings.cursor.matches)
            return Report(stopped=True, partial=summary_of(looking.findings.cursor, STOPPED))
        except MeantimeError as problem:
            return Report(error=Failed(str(problem), problem.code))
        except OSError as problem:
            why = f"{looking.findings.spec.of} cannot be looked at: {problem.strerror or problem}."
            return Report(error=Failed(why, type(problem).__name__))
        finally:
            if deadline is not None:
                deadline.cancel()
            looking.close()
            if self._running.get(task.id) == (me, looking):
                del self._running[task.id]
        context.emit("matches", looking.findings.cursor.matches)
        text = ending_of(looking.findings.spec, looking.findings.cursor, why)
        return Report(result=Jsonable(f"{text}\n{last}" if last else text, True))

    def _look(self, findings: Findings) -> RunningWatch:
        spec, clock = findings.spec, self._clock
        assert self._ledger is not None
        match spec.source:
            case "log":
                return _LogWatching(findings, self._scan, self._ledger)
            case "file":
                return FileWatch(findings, self._events, self._threads, clock)
            case "port":
                source = PortState(str(spec.of))
            case "url":
                source = UrlState(str(spec.of), spec.value)
            case "pid":
                source = ProcessState(spec)
            case "command":
                calls = FileCalls(folder_of(spec), self._threads)
                source = CommandState(spec, self._opened_commands(), calls, clock)
            case _:
                source = LedgerState(spec, self._ledger)
        return StateWatch(findings, source, clock)

    def _opened_commands(self) -> Commands:
        if not self._are_open:
            self._commands.open()
            self._are_open = True
        return self._commands

    def _arm(self, task: Task, looking: RunningWatch) -> Alarm | None:
        deadline = looking.findings.spec.deadline
        if deadline is None:
            return None
        left = deadline - self.age(task)
        if left <= 0:  # before its first look, which is then its only one
            looking.expire()
            return None
        return self._clock.call_later(left, looking.expire)

    def _scan(self, id: str, stream: str) -> LogScan:
        key = (id, stream)
        assert self._ledger is not None
        if key not in self._scans:
            gone = partial(self._scans.pop, key, None)
            self._scans[key] = LogScan(self._ledger, self._clock, id, stream, gone)
        return self._scans[key]

    # -- what outlives us

    def age(self, task: Task) -> float:
        spec = spec_of(task)
        began_at = task.created_at if task.run.not_before is None else task.run.started_at
        return age(self._clock, spec.boot, spec.began, began_at)

    async def detach(self, task: Task) -> bool:
        for _ in range(2):
            if task.id in self._running:
                break
            await asyncio.sleep(0)  # its run was launched just now, and has not taken its first step
        found = self._running.get(task.id)
        if not self._lasts or found is None:
            return False
        me, looking = found
        await looking.leave()
        me.cancel()
        return True

    def prepare(self, task: Task) -> None:
        """The cursor is all the trace there is."""

    def knows_whose(self, task: Task) -> bool:
        return False

    def keep(self, task: Task, kept: bool) -> None: ...

    async def end_leftovers(self, task: Task) -> Leftovers:
        return Leftovers()

    def forget(self, task: Task) -> None: ...

    async def sweep(
        self, active: Iterable[Task], known: Callable[[str], Awaitable[bool]], older_than: float
    ) -> None: ...


class _LogWatching:
    def __init__(self, findings: Findings, scan: Callable[[str, str], LogScan], ledger: WatchLedger) -> None:
        self.findings = findings
        self._watch = LogWatch(findings)
        self._scan_of = scan
        self._scan: LogScan | None = None
        self._ledger = ledger
        spec = findings.spec
        if not (findings.is_new and spec.new and spec.began is None):
            self._join()

    def _join(self) -> None:
        spec = self.findings.spec
        self._scan = self._scan_of(str(spec.of), spec.stream)
        self._scan.add(self._watch)

    async def ending(self) -> tuple[str, str]:
        if self._scan is None:  # it was delayed: what was printed before its run is not new
            spec = self.findings.spec
            try:
                chunk = await self._ledger.read(str(spec.of), spec.stream, 1 << 62, 1)
            except NotFound:
                return DELETED, ""
            self._watch.at = chunk.total
            await self.findings.begin(chunk.total)
            self._join()
        return await asyncio.shield(self._watch.over)

    def expire(self) -> None:
        self._watch.is_due = True
        if self._scan is not None:
            self._scan.poke()

    async def leave(self) -> None:
        if self._scan is not None:
            await self._watch.save()

    def close(self) -> None:
        self._watch.over.cancel()
        if self._scan is not None:
            self._scan.poke()
