"""A file or a folder: it appears, changes, goes. With an expression, the new lines of a file."""

from __future__ import annotations

import asyncio
import os
import stat
import zlib
from pathlib import Path
from typing import Any, cast

from meantime.kernel.line_blocks import LineBlocks
from meantime.kernel.model import Json
from meantime.ports.clock import Clock, sleep
from meantime.system.platform import FolderEvents

from .expressions import Expression, expression
from .findings import Findings
from .log_scan import DEADLINE, LogWatch
from .state_watch import Look, RunningWatch, StateWatch

POLL, RARELY = 1.0, 30.0  # seconds between looks: where nothing is reported, and where it is
SETTLES = 0.05  # seconds after a change before it is looked: a program rarely writes once
MOST_ENTRIES = 1_000  # of a folder, that are named
MOST_NAMED = 20  # of those that changed
PIECE = 1 << 18  # bytes that are read at once
MARKED = 256  # bytes before a cursor that tell one file from another


class FolderListener:
    """Sets an event when a file, or what is in a folder, may have changed."""

    def __init__(self, path: str, events: FolderEvents) -> None:
        self._path = path
        self._events = events
        self._wake: asyncio.Event | None = None
        self._numbers: set[int] = set()

    def start(self, wake: asyncio.Event) -> None:
        self._wake = wake

    def renew(self) -> float:
        """Before each look: a folder may have come since. Seconds until the next look is due anyway."""
        if self._wake is None:
            return POLL
        above = self._events.listen(os.path.dirname(self._path) or "/", self._wake.set)
        own = self._events.listen(self._path, self._wake.set) if os.path.isdir(self._path) else above
        self._numbers |= {above, own} - {-1}
        return RARELY if above >= 0 and own >= 0 else POLL

    def stop(self) -> None:
        if self._wake is not None:
            for number in self._numbers:
                self._events.forget(number, self._wake.set)


class FileState:
    """A file or a folder as a whole. Its state is what `stat` says; of a folder, of every entry."""

    def __init__(self, path: str, match: Expression | None, events: FolderEvents, clock: Clock) -> None:
        self.every = POLL
        self._path = path
        self._match = match
        self._clock = clock
        self._listener = FolderListener(path, events)
        self._has_looked = False

    def listen(self, wake: asyncio.Event) -> None:
        self._listener.start(wake)

    async def look(self, was: Json) -> Look:
        if self._has_looked:
            await sleep(self._clock, SETTLES)
        self._has_looked = True
        self.every = self._listener.renew()
        return await asyncio.to_thread(self._look, was)

    def _look(self, was: Json) -> Look:
        now = _entry(self._path)
        if now is None:
            gone = was is not None and was != {}
            return Look({}, f"{self._path} is gone" if gone else f"{self._path} is not there")
        if os.path.isdir(self._path):
            return self._folder(was)
        state = {"": now}
        old = cast("dict[str, Any]", was or {}).get("")
        return Look(state, f"{self._path} {'changed' if old else 'appeared'} ({now[1]:,} bytes)")

    def _folder(self, was: Json) -> Look:
        try:
            with os.scandir(self._path) as found:
                entries = {one.name: _entry(one.path) for one in found}
        except OSError as problem:
            return Look(was or {}, f"{self._path}: {problem.strerror}", failed=True)
        wanted = sorted(name for name in entries if self._match is None or self._match.fits(_plain(name)))
        if len(wanted) > MOST_ENTRIES:
            sum_of = zlib.crc32(repr([(name, entries[name]) for name in wanted]).encode("utf-8", "replace"))
            return Look({"/": [len(wanted), sum_of]}, f"{self._path} changed: {len(wanted):,} entries")
        state: dict[str, Json] = {"/": [len(wanted), 0]} | {_plain(name): entries[name] for name in wanted}
        return Look(state, _difference(self._path, cast("dict[str, Any]", was or {}), state))

    def close(self) -> None:
        self._listener.stop()


def _entry(path: str) -> list[int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _plain(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _difference(path: str, was: dict[str, Any], now: dict[str, Any]) -> str:
    new = [f"+ {name}" for name in now if name not in was and name != "/"]
    gone = [f"- {name}" for name in was if name not in now and name not in ("/", "")]
    other = [f"~ {name}" for name in now if name in was and was[name] != now[name] and name != "/"]
    every = [*new, *gone, *other]
    more = [f"and {len(every) - MOST_NAMED} more"] if len(every) > MOST_NAMED else []
    head = f"{path} appeared" if not was else f"{path} changed"
    return "\n".join([head, *every[:MOST_NAMED], *more])


class FileLines:
    """New lines of a file, as `tail -F` follows it: over its end, a cut, and a file in its place."""

    def __init__(self, findings: Findings, events: FolderEvents, clock: Clock) -> None:
        self.findings = findings
        self._path = cast("str", findings.spec.of)
        self._clock = clock
        self._watch = LogWatch(findings)
        self._wake = asyncio.Event()
        self._listener = FolderListener(self._path, events)
        self._listener.start(self._wake)
        self._fd = -1
        self._lines = LineBlocks(0)
        self._history: list[bytes] = []
        self._file: list[int] = []
        self._read_mark: list[int] = []  # of what was read last
        self._is_due = False

    async def ending(self) -> tuple[str, str]:
        every = self.findings.spec.every
        if self._watch.over.done():
            return self._watch.over.result()
        await self._begin()
        while True:
            is_last = self._is_due
            self._wake.clear()
            rest = self._listener.renew()
            await self._follow()
            if self._watch.over.done():
                return self._watch.over.result()
            if is_last:
                return DEADLINE, ""
            alarm = self._clock.call_later(every or rest, self._wake.set)
            try:
                await self._wake.wait()
            finally:
                alarm.cancel()

    async def _begin(self) -> None:
        """A file that is there is searched from the cursor; without one from its beginning, or its end."""
        cursor, spec = self.findings.cursor, self.findings.spec
        if self.findings.is_new and spec.new and (found := _identity(self._path)) is not None:
            self._open(found)
            size = os.fstat(self._fd).st_size if self._fd >= 0 else 0
            await self.findings.save(at=size, state=_mark(self._fd, found, size))
            cursor = self.findings.cursor
        elif (found := _identity(self._path)) is not None:
            self._open(found)
        if self._fd >= 0 and cursor.state == _mark(self._fd, self._file, cursor.at):
            self._go_to(cursor.at)
            self._read_mark = cursor.state

    def _go_to(self, at: int) -> None:
        self._lines = LineBlocks(at)
        self._watch.at = at

    def _open(self, file: list[int]) -> None:
        """A path that is not a file, such as a pipe or a folder, has no lines. One that may not be read ends
        the watch: nobody would be told of anything."""
        try:
            self._fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except PermissionError:
            raise
        except OSError:
            return
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            self._fd = -1
            return
        self._file = file
        self._go_to(0)
        self._read_mark = _mark(self._fd, file, 0)

    async def _follow(self) -> None:
        """Reads to the end of the file that is open; then of the one that has taken its place."""
        await self._read(last=False)
        found = _identity(self._path)
        if self._watch.over.done() or found is None or (found == self._file and self._fd >= 0):
            return
        if self._fd >= 0:
            await self._read(last=True)  # what was written to the old file, until its last byte
            os.close(self._fd)
            self._fd = -1
        self._open(found)
        await self._read(last=False)

    async def _read(self, *, last: bool) -> None:
        if self._fd >= 0 and self._read_mark != _mark(self._fd, self._file, self._lines.at):
            self._go_to(0)  # it was cut: what is there now is new
        while self._fd >= 0 and not self._watch.over.done():
            data = os.pread(self._fd, PIECE, self._lines.at)
            block = self._lines.feed(data, last=last and not data)
            if block:
                at = self._lines.searched
                await self._watch.search(block, self._history, at, state=_mark(self._fd, self._file, at))
                self._history = [line for line in block.split(b"\n")[-40:] if line][-20:]
            if not data:
                self._read_mark = _mark(self._fd, self._file, self._lines.at)
                return
            await asyncio.sleep(0)

    def expire(self) -> None:
        self._is_due = True
        self._wake.set()

    async def leave(self) -> None:
        """Only what was told is behind the cursor, which a block that is being told is not."""
        if self._fd >= 0 and not self._watch.over.done():
            at = self._watch.at
            await self.findings.save(at=at, state=_mark(self._fd, self._file, at))

    def close(self) -> None:
        self._listener.stop()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _identity(path: str) -> list[int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return [found.st_dev, found.st_ino]


def _mark(fd: int, file: list[int], at: int) -> list[int]:
    """Which file it is, and what is before the offset: a new file may have the number of an old one."""
    begin = max(0, at - MARKED)
    try:
        before = os.pread(fd, at - begin, begin)
    except OSError:
        before = b""
    return [*file, zlib.crc32(before)]


def file_watch(findings: Findings, events: FolderEvents, clock: Clock) -> RunningWatch:
    """Lines of a file, or its state. An expression for a folder is for the names in it."""
    spec = findings.spec
    path = cast("str", spec.of)
    is_folder = Path(path).is_dir() or path.endswith("/")
    if spec.match and not is_folder:
        return FileLines(findings, events, clock)
    names = expression(spec.match) if spec.match else None
    return StateWatch(findings, FileState(path, names, events, clock), clock, match="")
