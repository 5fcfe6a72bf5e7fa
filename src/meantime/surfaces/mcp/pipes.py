"""This process's stdin and stdout, for us alone: what anybody else here reads is empty, and what anybody
else prints goes to stderr. A line that is too long is counted, not kept."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import stat
import sys
import termios
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

PIECE = 65_536


class TooLong(NamedTuple):
    bytes: int


class Lines:
    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader

    def __aiter__(self) -> Lines:
        return self

    async def __anext__(self) -> bytes | TooLong:
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.LimitOverrunError as over:
            return await self._skip(over.consumed)
        except asyncio.IncompleteReadError as end:
            if end.partial:
                return end.partial
            raise StopAsyncIteration from None

    async def _skip(self, ahead: int) -> TooLong:
        """To the end of the line, piece by piece."""
        count = 0
        while True:
            count += len(await self._reader.readexactly(ahead))
            try:
                return TooLong(count + len(await self._reader.readuntil(b"\n")))
            except asyncio.LimitOverrunError as over:
                ahead = over.consumed
            except asyncio.IncompleteReadError as end:
                return TooLong(count + len(end.partial))


class Out:
    """Written in order, and never in parts: two who write at once would tear each other's lines."""

    def __init__(self, fd: int, writer: asyncio.StreamWriter | None) -> None:
        self._fd = fd
        self._writer = writer
        self._turn = asyncio.Lock()

    async def write(self, data: bytes) -> None:
        """Returns when the system has it."""
        async with self._turn:
            if self._writer is None:
                os.write(self._fd, data)
                return
            self._writer.write(data)
            await self._writer.drain()

    def is_taken(self) -> bool | None:
        """Whether whoever reads has read everything; None where the system does not say."""
        if self._writer is not None and self._writer.transport.get_write_buffer_size():
            return False
        left = _unread(self._fd)
        return None if left is None else left == 0


def _unread(fd: int) -> int | None:
    if sys.platform != "linux":
        return None
    mode = os.fstat(fd).st_mode
    asked = termios.TIOCOUTQ if stat.S_ISSOCK(mode) else termios.FIONREAD if stat.S_ISFIFO(mode) else None
    if asked is None:
        return None
    try:
        return int.from_bytes(fcntl.ioctl(fd, asked, bytes(4)), sys.byteorder)
    except OSError:
        return None


@asynccontextmanager
async def own_pipes(longest: int) -> AsyncGenerator[tuple[Lines, Out]]:
    stdin, stdout = _aside(0), _aside(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=longest)
    source = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(_readable(stdin), "rb", 0)
    )
    out = Out(stdout, await _writer(stdout))
    try:
        yield Lines(reader), out
    finally:
        source[0].close()
        with suppress(OSError):
            os.dup2(stdout, 1)


def _aside(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def _readable(fd: int) -> int:
    """A file cannot be waited for; a thread makes a pipe of it."""
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    reads, writes = os.pipe()

    def pump() -> None:
        with suppress(OSError), os.fdopen(fd, "rb") as file, os.fdopen(writes, "wb") as pipe:
            shutil.copyfileobj(file, pipe, PIECE)

    threading.Thread(target=pump, daemon=True).start()
    return reads


async def _writer(fd: int) -> asyncio.StreamWriter | None:
    """None for a file: writing to it never waits."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return None
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, os.fdopen(os.dup(fd), "wb", 0)
    )
    transport.set_write_buffer_limits(0)  # a drain waits until everything is with the system
    return asyncio.StreamWriter(transport, protocol, None, loop)
