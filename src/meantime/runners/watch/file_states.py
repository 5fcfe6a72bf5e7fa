"""A file or a folder: it appears, changes, goes. With an expression, the new lines of a file."""

from __future__ import annotations

import asyncio
import os
import stat
import zlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, cast

from meantime.kernel.model import Json
from meantime.kernel.watches import WatchSpec
from meantime.ports.clock import Clock, sleep
from meantime.system.platform import FolderEvents

from .expressions import Expression, expression
from .file_threads import FileCalls, FileThreads, Hangs
from .findings import Findings
from .followed_file import CannotRead, FollowedFile, device_of
from .log_scan import DEADLINE, LogWatch
from .state_watch import Look, LookTimes, RunningWatch, StateWatch

T = TypeVar("T")
POLL, RARELY = 1.0, 30.0  # seconds between looks: where nothing is reported, and where it is
SETTLES = 0.05  # seconds after a change before it is looked: a program rarely writes once
MOST_ENTRIES = 1_000  # of a folder, that are named
MOST_NAMED = 20  # of those that changed
BEFORE = 20  # lines that are remembered, for those before a match


class FolderListener:
    """Calls when a file, or what is in a folder, may have changed."""

    def __init__(self, path: str, events: FolderEvents, wake: Callable[[], object]) -> None:
        self._path = path
        self._events = events
        self._wake = wake
        self._numbers: set[int] = set()
        events.open()

    def renew(self) -> float:
        """Before each look, and beside the event loop as that: a folder may have come since. Seconds until
        the next look is due anyway."""
        above = self._events.listen(os.path.dirname(self._path) or "/", self._wake)
        own = self._events.listen(self._path, self._wake) if os.path.isdir(self._path) else above
        self._numbers |= {above, own} - {-1}
        return RARELY if above >= 0 and own >= 0 else POLL

    def stop(self) -> None:
        for number in self._numbers:
            self._events.forget(number, self._wake)


class EntryNames(NamedTuple):
    """Which entries of a folder count."""

    match: Expression | None  # None: all of them
    until: Expression | None  # an entry of such a name ends the watch
    new: bool  # those that are there at the beginning do not count

    def tells(self, name: str) -> bool:
        return self.match is None or self.match.fits(name)

    def ends(self, name: str) -> bool:
        return self.until is not None and self.until.fits(name)


class FileState:
    """A file or a folder as a whole. Its state is what `stat` says; of a folder, of every entry."""

    reports = False

    def __init__(
        self, path: str, names: EntryNames, events: FolderEvents, calls: FileCalls, clock: Clock
    ) -> None:
        """`names`: of a folder, the entries that count."""
        self.every = POLL
        self._path = path
        self._names = names
        self._events = events
        self._calls = calls
        self._clock = clock
        self._listener: FolderListener | None = None
        self._wake = asyncio.Event()
        self._has_looked = False

    def listen(self, wake: asyncio.Event) -> None:
        self._wake = wake
        self._listener = FolderListener(self._path, self._events, wake.set)

    async def look(self, was: Json) -> Look:
        if self._has_looked:
            await sleep(self._clock, SETTLES)
        self._has_looked = True
        try:
            self.every, look = await self._calls.make(lambda: self._look(was))
        except Hangs as problem:
            self._calls.when_back(self._wake.set)
            return Look(was, str(problem), trouble=str(problem), failed=True)
        return look._replace(late=self._calls.was_late)

    def _look(self, was: Json) -> tuple[float, Look]:
        rest = self._listener.renew() if self._listener is not None else POLL
        try:
            found = os.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):
            gone = was is not None and was != {}
            self._calls.place = device_of(self._path) or self._path
            text = f"{self._path} is gone" if gone else f"{self._path} is not there"
            return rest, Look({}, text, wanted=self._is_wanted(was, {}), ends=False)
        except OSError as problem:
            return rest, self._unseen(was, problem)
        self._calls.place = found.st_dev
        if stat.S_ISDIR(found.st_mode):
            return rest, self._folder(was)
        old = cast("dict[str, Any]", was or {}).get("")
        text = f"{self._path} {'changed' if old else 'appeared'} ({found.st_size:,} bytes)"
        state: dict[str, Json] = {"": _entry(found)}
        return rest, Look(state, text, wanted=self._is_wanted(was, state), ends=False)

    def _folder(self, was: Json) -> Look:
        try:
            with os.scandir(self._path) as found:
                entries = {one.name: _stat(one.path) for one in found}
        except OSError as problem:
            return self._unseen(was, problem)
        before = cast("dict[str, Any] | None", was)
        old, last = self._ending(before, entries)
        named = sorted(name for name in entries if self._names.tells(_plain(name)) or name in last)
        state: dict[str, Json]
        if len(named) > MOST_ENTRIES:
            sum_of = zlib.crc32(repr([(name, entries[name]) for name in named]).encode("utf-8", "replace"))
            state = {"/": [len(named), sum_of, *old]}
            text = f"{self._path} {'already has' if was is None else 'changed:'} {len(named):,} entries"
        else:
            state = {"/": [len(named), 0, *old]} | {_plain(name): entries[name] for name in named}
            text = _difference(self._path, before, state)
        return Look(state, text, wanted=self._is_wanted(was, state), ends=bool(last))

    def _ending(self, was: dict[str, Any] | None, entries: Iterable[str]) -> tuple[list[Json], list[str]]:
        """The entries that would end the watch, and are there since its beginning; and those that end it.
        Very many at the beginning are only counted: one more ends it."""
        fitting = [name for name in entries if self._names.ends(_plain(name))]
        if was is None and self._names.new:
            many = len(fitting) > MOST_ENTRIES
            return [len(fitting)] if many else [_plain(name) for name in fitting], []
        old: list[Json] = (was or {}).get("/", [])[2:]
        if old and isinstance(most := old[0], int):
            return old, fitting[: max(0, len(fitting) - most)]
        return old, [name for name in fitting if _plain(name) not in old]

    def _is_wanted(self, was: Json, now: Json) -> bool | None:
        """Whether an entry that counts by its name is new, other or gone; None where every change counts."""
        if self._names.match is None:
            return None
        if was is None:
            return _count(now) > 0 and not self._names.new
        return _count(was) + _count(now) > 0

    def _unseen(self, was: Json, problem: OSError) -> Look:
        text = f"{self._path} cannot be looked at: {problem.strerror}."
        return Look(was, text, trouble=text, failed=True)

    def close(self) -> None:
        if self._listener is not None:
            self._calls.close(self._listener.stop)


def _count(state: Json) -> int:
    """Entries of a folder."""
    return cast("dict[str, Any]", state).get("/", [0])[0]


def _stat(path: str) -> list[int] | None:
    try:
        return _entry(os.stat(path))
    except OSError:
        return None


def _entry(found: os.stat_result) -> list[int]:
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _plain(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _shown(name: str) -> str:
    """With what is not a visible sign escaped: an end of line in a name would forge a line of a notice."""
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in name)


def _difference(path: str, before: dict[str, Any] | None, now: dict[str, Any]) -> str:
    was = before or {}
    new = [f"+ {_shown(name)}" for name in now if name not in was and name != "/"]
    gone = [f"- {_shown(name)}" for name in was if name not in now and name not in ("/", "")]
    other = [f"~ {_shown(name)}" for name in now if name in was and was[name] != now[name] and name != "/"]
    every = [*new, *gone, *other]
    more = [f"and {len(every) - MOST_NAMED} more"] if len(every) > MOST_NAMED else []
    head = f"{path} {'already has' if before is None else 'changed' if was else 'appeared'}"
    return "\n".join([head, *every[:MOST_NAMED], *more])


class _Expired(Exception):
    """The deadline has come while the file system does not answer."""


class _FileLooks:
    """Calls that are waited for, until they come back or the deadline has come. That they do not is told."""

    def __init__(self, findings: Findings, calls: FileCalls) -> None:
        self.calls = calls
        self.is_due = False
        self._findings = findings

    async def make(self, do: Callable[[], T], *, is_look: bool = True) -> T:
        """`is_look`: if it goes well, what is watched can be looked at."""
        while True:
            try:
                result = await self.calls.make(do)
            except Hangs as problem:
                await self._findings.say_trouble(str(problem))
                if self.is_due:
                    raise _Expired from None
            else:
                # A file system that is slow for each call is told of once.
                if is_look and not self.calls.was_late:
                    await self._findings.say_trouble("")
                return result


class FileLines:
    """New lines of a file, as `tail -F` follows it."""

    def __init__(self, findings: Findings, events: FolderEvents, looks: _FileLooks, clock: Clock) -> None:
        self.findings = findings
        self._watch = LogWatch(findings)
        self._times = LookTimes(clock, findings.spec.every)
        self._looks = looks
        self._listener = FolderListener(cast("str", findings.spec.of), events, self._times.wake.set)
        self._file = FollowedFile(cast("str", findings.spec.of))
        self._searched: tuple[int, Json] | None = None  # how far, and in which file
        self._history: list[bytes] = []
        self._has_begun = False

    async def ending(self) -> tuple[str, str]:
        if self._watch.over.done():
            return self._watch.over.result()
        while True:
            is_last = self._times.is_due
            self._times.wake.clear()
            rest = await self._looks.make(self._listener.renew, is_look=False)
            try:
                await self._begin()
                await self._follow()
            except CannotRead as problem:
                await self.findings.say_trouble(str(problem))
            if self._watch.over.done():
                return self._watch.over.result()
            if is_last:
                return DEADLINE, ""
            await self._times.pause(self.findings.spec.every or rest)

    async def _begin(self) -> None:
        if self._has_begun:
            return
        cursor = self.findings.cursor
        at_end = self.findings.spec.new and cursor.state is None  # nobody has begun it
        begin = await self._looks.make(lambda: self._file.begin(cursor.at, cursor.state, at_end=at_end))
        self._has_begun = True
        self._learn_device()
        if at_end:  # a file that is not there yet is new as a whole, for a later owner as well
            at, state = begin or (0, [])
            await self.findings.save(at=at, state=state)

    def _learn_device(self) -> None:
        if self._file.device is not None:
            self._looks.calls.place = self._file.device

    async def _follow(self) -> None:
        """Reads to the end of the file that is open; then of the one that has taken its place."""
        more = True
        while more and not self._watch.over.done():
            block, searched, state, more = await self._looks.make(self._file.next)
            self._learn_device()
            if not block:
                continue
            await self._watch.search(block, self._history, searched, state=state)
            self._history = [line for line in block.split(b"\n")[-2 * BEFORE :] if line][-BEFORE:]
            self._searched = (searched, state)

    def expire(self) -> None:
        self._looks.is_due = True
        self._times.expire()

    async def leave(self) -> None:
        """Only what was told is behind the cursor, which a block that is being told is not."""
        if self._searched is not None and not self._watch.over.done():
            at, state = self._searched
            await self.findings.save(at=at, state=state)

    def close(self) -> None:
        self._looks.calls.close(self._end)

    def _end(self) -> None:
        self._listener.stop()
        self._file.close()


class FileWatch:
    """Lines of a file, or its state. An expression for a folder is for the names in it."""

    def __init__(self, findings: Findings, events: FolderEvents, threads: FileThreads, clock: Clock) -> None:
        self.findings = findings
        self._path = cast("str", findings.spec.of)
        self._events = events
        self._clock = clock
        self._calls = FileCalls(self._path, threads)
        self._looks = _FileLooks(findings, self._calls)
        self._watch: RunningWatch | None = None

    async def ending(self) -> tuple[str, str]:
        try:
            self._watch = await self._of_its_kind()
            if self._looks.is_due:
                self._watch.expire()
            return await self._watch.ending()
        except _Expired:
            return DEADLINE, ""

    async def _of_its_kind(self) -> RunningWatch:
        path, match, clock = self._path, self.findings.spec.match, self._clock
        has_lines = bool(match or self.findings.spec.until) and not path.endswith("/")
        if has_lines and not await self._looks.make(lambda: os.path.isdir(path), is_look=False):
            return FileLines(self.findings, self._events, self._looks, clock)
        names = self._names(self.findings.spec)
        state = FileState(path, names, self._events, self._calls, clock)
        return StateWatch(self.findings, state, clock, match="", is_quick=True)

    @staticmethod
    def _names(spec: WatchSpec) -> EntryNames:
        match, until = (expression(text) if text else None for text in (spec.match, spec.until))
        return EntryNames(match, until, spec.new)

    def expire(self) -> None:
        self._looks.is_due = True
        if self._watch is not None:
            self._watch.expire()

    async def leave(self) -> None:
        if self._watch is not None:
            await self._watch.leave()

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
