"""The wire to a server that we start: one JSON message a line, on its stdin and stdout."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from types import TracebackType

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from meantime.integrations.guarded_process import GuardedProcess
from meantime.integrations.mcp.id_scan import IdScan
from meantime.integrations.mcp.servers import INHERITED, StdioServer
from meantime.integrations.mcp.stderr_tail import StderrTail
from meantime.system.line_splitter import LineSplitter, StreamLines

MOST_BYTES = 32 << 20  # of one message
MOST_WAITING = 64 << 20  # bytes that it has not read yet


class StdioWire:
    """The process, and both streams as the SDK wants them. `async with` it in one asyncio task."""

    def __init__(self, server: StdioServer) -> None:
        self._server = server
        self._process: GuardedProcess
        self._stderr = StderrTail()
        self.garbage = 0  # lines of its stdout that are no message
        self.first_garbage = ""

    async def __aenter__(self) -> tuple[MessageReader, MessageWriter]:
        server = self._server
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        env = {**kept, **server.env}
        self._process = await GuardedProcess.start(server.command, env, server.cwd, self._stderr.write)
        return MessageReader(self, self._process.stdout), MessageWriter(self._process.stdin)

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._process.close()

    async def wait_ended(self, seconds: float) -> int | None:
        return await self._process.wait_ended(seconds)

    @property
    def stderr(self) -> str:
        """Its last lines."""
        return self._stderr.text

    def count_garbage(self, line: bytes) -> None:
        self.garbage += 1
        self.first_garbage = self.first_garbage or line[:100].decode("utf-8", "replace")


class MessageReader:
    """Messages from the server. Lines that are not messages are counted; an answer that cannot be kept or
    read is the error of its request, so that nobody waits for it.
    """

    def __init__(self, wire: StdioWire, stream: asyncio.StreamReader) -> None:
        self._wire = wire
        # A line without its end was cut by the end of the server: whoever waits for it hears of that end.
        self._lines = StreamLines(stream, LineSplitter(MOST_BYTES, IdScan), with_rest=False)

    async def receive(self) -> SessionMessage | Exception:
        while True:
            message = self._read(await anext(self._lines))
            if message is not None:
                return message

    def _read(self, line: bytes) -> SessionMessage | None:
        if isinstance(line, IdScan):
            return self._refuse(line, b"", f"The server's answer has more than {MOST_BYTES >> 20} MB.")
        if not line.strip():
            return None
        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            scan = IdScan()
            scan.feed(line)
            return self._refuse(scan, line, "The server's answer cannot be read: it is not valid JSON-RPC.")

    def _refuse(self, scan: IdScan, line: bytes, why: str) -> SessionMessage | None:
        id = scan.answers
        if id is None:
            self._wire.count_garbage(line)
            return None
        error = ErrorData(code=PARSE_ERROR, message=why)
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id, error=error))

    # -- as the SDK reads a stream

    def __aiter__(self) -> MessageReader:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self.receive()

    async def aclose(self) -> None:
        pass

    async def __aenter__(self) -> MessageReader:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class MessageWriter:
    """Messages to the server."""

    def __init__(self, stream: asyncio.StreamWriter) -> None:
        self._stream = stream

    async def send(self, item: SessionMessage) -> None:
        if self._stream.transport.get_write_buffer_size() > MOST_WAITING:
            raise anyio.BrokenResourceError  # it has not read for long, and we keep no more for it
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._stream.write(text.encode() + b"\n")  # whole, also if we are cancelled in the next line
        with suppress(ConnectionError):  # the end of its stdout says the same, and is heard by everyone
            await self._stream.drain()

    async def aclose(self) -> None:
        self._stream.close()

    async def __aenter__(self) -> MessageWriter:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
