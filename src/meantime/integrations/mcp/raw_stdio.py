"""A stdio server behind a wrap: lines in, lines out, nothing of them read here."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress

from meantime.integrations.guarded_process import GuardedProcess
from meantime.ports.event_loop import BackgroundTasks
from meantime.ports.wrapped_server import ServerEnd, ServerFull
from meantime.system.line_splitter import LineSplitter, StreamLines

from .id_scan import IdScan
from .stderr_tail import StderrTail

MOST_BYTES = 64 << 20  # of one message
MOST_UNREAD = 64 << 20  # bytes that the server has not read yet
LAST_WORDS = 2.0  # seconds in which a server that closed its stdout may say why it ends
NO_PROGRAM = 127


def pass_on(line: bytes, end: ServerEnd) -> None:
    """A line that cannot be kept or read is the error of the request that it answers, so that nobody waits
    for it."""
    if isinstance(line, IdScan):
        end.on_unreadable(line.answers, f"It has more than {MOST_BYTES >> 20} MB.")
    elif line.strip() and not end.on_line(line):
        scan = IdScan()
        scan.feed(line)
        end.on_unreadable(scan.answers, "It is not valid JSON-RPC.")


class RawStdio:
    """One process. It is started in the background; lines that are sent before are kept for it."""

    def __init__(self, name: str, command: list[str], env: dict[str, str], cwd: str, end: ServerEnd) -> None:
        self.name = name
        self.is_open = True
        self._command = command
        self._env = env
        self._cwd = cwd
        self._end = end
        self._process: GuardedProcess | None = None
        self._early: deque[bytes] = deque()
        self._early_bytes = 0
        self._stderr = StderrTail()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._beside = BackgroundTasks()
        self._running = self._beside.start(self._run())

    def send(self, line: bytes) -> None:
        if self._process is None:
            self._early_bytes += len(line)
            if self._early_bytes > MOST_UNREAD:
                raise ServerFull
            self._early.append(line)
            return
        stdin = self._process.stdin
        if stdin.transport.get_write_buffer_size() > MOST_UNREAD:
            raise ServerFull
        if not stdin.is_closing():
            stdin.write(line + b"\n")

    def authorize(self, authorization: str) -> None:
        pass

    def pause(self, paused: bool) -> None:
        if paused:
            self._flowing.clear()
        else:
            self._flowing.set()

    async def close(self) -> None:
        self.is_open = False
        self._running.cancel()
        await asyncio.wait([self._running])
        if self._process is not None:
            await self._process.close()

    async def _run(self) -> None:
        try:
            self._process = await GuardedProcess.start(
                self._command, self._env, self._cwd, self._stderr.write
            )
        except OSError as problem:
            self._gone(f"It could not be started in {self._cwd}: {problem.strerror or problem}.")
            return
        self._env = {}  # it has them
        while self._early:
            self._process.stdin.write(self._early.popleft() + b"\n")
        with suppress(ConnectionError):
            await self._read(self._process.stdout)
        code = await self._process.wait_ended(LAST_WORDS)
        self._gone(self._ending(code))
        await self._process.close()

    async def _read(self, stream: asyncio.StreamReader) -> None:
        lines = StreamLines(stream, LineSplitter(MOST_BYTES, IdScan), with_rest=False)
        async for line in lines:
            pass_on(line, self._end)
            if not self._flowing.is_set():
                await self._flowing.wait()

    def _ending(self, code: int | None) -> str:
        said = self._stderr.last_words
        more = f" Its last words on stderr: {said}" if said else ""
        if code == NO_PROGRAM:
            is_name = not self.name and len(self._command) == 1
            also = " There is no server of this name in [mcp.servers]." if is_name else ""
            return f"The program {self._command[0]!r} could not be started.{also}{more}"
        if code is None:
            return f"It closed its stdout.{more}"
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"It {how}.{more}"

    def _gone(self, why: str) -> None:
        if self.is_open:
            self.is_open = False
            self._end.on_gone(why)
