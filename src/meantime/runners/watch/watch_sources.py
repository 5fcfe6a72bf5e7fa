"""Sources of watches: logs, files, ports, pages, processes, commands and the ledger itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial

from meantime.kernel.errors import NotFound, Refused
from meantime.kernel.model import Task
from meantime.ports.clock import Clock
from meantime.ports.commands import Commands
from meantime.ports.watch_ledger import WatchLedger
from meantime.system.platform import FolderEvents

from .file_states import FileWatch
from .file_threads import FileCalls, FileThreads, Hangs
from .findings import Findings
from .log_scan import DELETED, LogScan, LogWatch
from .network_states import PortState, UrlState
from .process_states import CommandState, LedgerState, ProcessState, folder_of
from .state_watch import RunningWatch, StateWatch


class WatchSources:
    def __init__(self, ledger: WatchLedger, commands: Commands, clock: Clock) -> None:
        self._ledger = ledger
        self._commands = commands
        self._clock = clock
        self._are_open = False
        self._events = FolderEvents()
        self._threads = FileThreads(clock)
        self._scans: dict[tuple[str, str], LogScan] = {}

    async def close(self) -> None:
        for scan in tuple(self._scans.values()):
            scan.close()
        self._events.close()
        self._threads.close()
        if self._are_open:
            await self._commands.close()

    async def is_folder(self, path: str) -> bool:
        calls = FileCalls(path, self._threads)
        try:
            return await calls.make(lambda: os.path.isdir(path))
        except Hangs as problem:
            calls.close(lambda: None)
            raise Refused(str(problem), code="no_answer", hint="Start it when that answers again.") from None

    def look(self, task: Task) -> RunningWatch:
        findings, clock = Findings(task, self._ledger, self._clock), self._clock
        spec = findings.spec
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

    def _scan(self, id: str, stream: str) -> LogScan:
        key = (id, stream)
        if key not in self._scans:
            gone = partial(self._scans.pop, key, None)
            self._scans[key] = LogScan(self._ledger, self._clock, id, stream, gone)
        return self._scans[key]


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
