"""A process that is not ours, a command that is run again and again, and what the ledger has."""

from __future__ import annotations

import asyncio
import os
import zlib
from collections.abc import AsyncIterator, Callable
from typing import cast

from meantime.kernel.errors import MeantimeError, NotFound
from meantime.kernel.ids import ENTROPY, crockford
from meantime.kernel.model import Json
from meantime.kernel.watches import WatchSpec
from meantime.ports.clock import Clock
from meantime.ports.commands import Command, CommandEnd, Commands, Piece
from meantime.ports.watch_ledger import WatchLedger
from meantime.system.platform import ProcessHandle, is_this_boot, stat

from .file_threads import FileCalls, Hangs
from .state_watch import Look, changed

LONGEST = 60.0  # seconds that a polled command may take
MOST_OUTPUT = 1 << 16  # bytes of its output that are compared
MOST_TOLD = 2_000  # characters of its output that are told


class ProcessState:
    """By pid and start: a pid alone may be another's by now."""

    every = 1.0
    reports = False

    def __init__(self, spec: WatchSpec) -> None:
        self._pid = cast("int", spec.of)
        self._spec = spec
        self._handle: ProcessHandle | None = None

    def listen(self, wake: asyncio.Event) -> None:
        """The system says when it ends, where it can."""
        if not self._runs():
            return
        try:
            self._handle = ProcessHandle(self._pid)
        except OSError:
            return
        self.every, self.reports = 30.0, True
        self._handle.on_exit(asyncio.get_running_loop(), wake.set)

    def _runs(self) -> bool:
        found = stat(self._pid)
        same = found is not None and found.started == self._spec.started and found.state not in "ZX"
        return same and is_this_boot(self._spec.boot)

    async def look(self, was: Json) -> Look:
        state = "running" if self._runs() else "gone"
        text = f"process {self._pid} is {state}"
        return Look(state, text, state, over="" if state == "running" else "until the process ended")

    def close(self) -> None:
        if self._handle is not None:
            self._handle.close()
            self._handle = None


class CommandState:
    """A command that is run again and again, one after the other. Its state: exit code and output."""

    every = 30.0
    reports = False

    def __init__(self, spec: WatchSpec, commands: Commands, calls: FileCalls, clock: Clock) -> None:
        self._argv = ("/bin/sh", "-c", spec.of) if isinstance(spec.of, str) else tuple(spec.of)
        self._cwd = folder_of(spec)
        self._calls = calls
        self._commands = commands
        self._clock = clock

    def listen(self, wake: asyncio.Event) -> None: ...

    async def look(self, was: Json) -> Look:
        try:
            await self._check_folder()
        except Hangs as problem:
            return self._failed(was, str(problem))
        key = "w_" + crockford(os.urandom(ENTROPY))
        command = Command(self._argv, self._cwd, dict(os.environ), leftovers="kill")
        try:
            self._commands.prepare(key)
        except MeantimeError as problem:
            return self._failed(was, str(problem))
        followed = self._commands.follow(key, command)
        took_long = False

        def stop() -> None:
            nonlocal took_long
            took_long = True
            stopping.append(asyncio.ensure_future(followed.stop()))

        stopping: list[asyncio.Future[CommandEnd]] = []
        alarm = self._clock.call_later(LONGEST, stop)
        try:
            output, total = await self._output(followed.stdout())
            end = await followed.ending()
            error = await followed.stderr(MOST_TOLD)
        except asyncio.CancelledError:
            await followed.stop()
            raise
        finally:
            alarm.cancel()
            await asyncio.gather(*stopping)
            self._commands.forget(key)
        if took_long:
            return self._failed(was, f"it did not end within {LONGEST:.0f} seconds, and was stopped")
        if end.error is not None or end.lost:
            return self._failed(was, end.error.message if end.error else end.lost)
        return _ended(was, end, output, total, error)

    async def _check_folder(self) -> None:
        """Without its folder the command may never again have a state that is told: the watch fails."""
        if not await self._calls.make(lambda: os.path.isdir(self._cwd)):
            raise NotFound(
                f"The folder {self._cwd} is not there any more, so the command cannot be run in it.",
                code="no_such_folder",
            )

    async def _output(self, pieces: AsyncIterator[Piece]) -> tuple[bytes, int]:
        """The first of it, and how much there was: what is beyond is not compared."""
        kept, total = b"", 0
        async for piece in pieces:
            total += len(piece.data)
            kept = (kept + piece.data)[:MOST_OUTPUT]
        return kept, total

    def _failed(self, was: Json, why: str) -> Look:
        state = ["failed", 0]
        return Look(state, changed(_exit(was), "failed", why), f"failed\n{why}", failed=True)

    def close(self) -> None: ...


def folder_of(spec: WatchSpec) -> str:
    """The folder that its command runs in."""
    return spec.cwd or os.path.expanduser("~")


def _ended(was: Json, end: CommandEnd, output: bytes, total: int, error: str) -> Look:
    said = f"exit {end.exit_code}" if end.exit_code is not None else f"killed by signal {end.signal}"
    text = output.decode("utf-8", "replace").rstrip()[:MOST_TOLD]
    shown = "\n".join(part for part in (text, error.rstrip() if end.exit_code else "") if part)
    state = [said, zlib.crc32(output) ^ total]
    return Look(state, changed(_exit(was), said, shown), f"{said}\n{shown}")


def _exit(was: Json) -> Json:
    return cast("list[Json]", was)[0] if isinstance(was, list) else None


class LedgerState:
    """Another task, thread or batch."""

    every = 3_600.0  # every commit says when to look
    reports = True

    def __init__(self, spec: WatchSpec, ledger: WatchLedger) -> None:
        self._source = spec.source
        self._id = cast("str", spec.of)
        self._ledger = ledger
        self._stop: Callable[[], None] | None = None

    def listen(self, wake: asyncio.Event) -> None:
        self._stop = self._ledger.listen(self._source, self._id, wake.set)

    async def look(self, was: Json) -> Look:
        try:
            found = await self._ledger.standing(self._source, self._id)
        except NotFound:
            return Look("deleted", changed(was, "deleted"), over="until it was deleted")
        text = f"{self._source} {self._id}: {changed(was, found.text)}"
        over = f"until its {self._source} ended" if found.ended else ""
        return Look(found.text, text, found.text, over)

    def close(self) -> None:
        if self._stop is not None:
            self._stop()
