"""This process's stdin and stdout on the event loop. A line that is too long is counted, not kept."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from meantime.system.line_splitter import PIECE, LineSplitter, LongLine, StreamLines
from meantime.system.platform import unread_bytes

from .standard_streams import own_streams


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

    async def flush(self) -> None:
        """Returns when the system has everything."""
        async with self._turn:
            if self._writer is not None:
                await self._writer.drain()

    def is_taken(self) -> bool | None:
        """Whether whoever reads has read everything; None where the system does not say."""
        if self._writer is not None and self._writer.transport.get_write_buffer_size():
            return False
        left = unread_bytes(self._fd)
        return None if left is None else left == 0


@asynccontextmanager
async def own_pipes(longest: int) -> AsyncGenerator[tuple[StreamLines, Out]]:
    """The pipes of this process, from where the former reader and writer stopped."""
    streams = own_streams()
    reader = asyncio.StreamReader()
    reader.feed_data(streams.unread)
    if streams.ended:
        source = None
        reader.feed_eof()
    else:
        source, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(_readable(streams.stdin), "rb", 0)
        )
    writer = await _writer(streams.stdout)
    if writer is not None:
        writer.write(streams.unsent)  # goes out before anything else; nobody waits for it here
    out = Out(streams.stdout, writer)
    try:
        yield StreamLines(reader, LineSplitter(longest, LongLine)), out
    finally:
        if source is not None:
            source.close()
        with suppress(OSError):
            os.dup2(streams.stdout, 1)


def _readable(fd: int) -> int:
    """Pipes, sockets and terminals can be waited for. A thread makes a pipe of anything else: a file, or
    /dev/null."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd):
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
