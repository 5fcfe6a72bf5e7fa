"""The wire to a server that we start: one JSON message a line, on its stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

from meantime.integrations import guarded_process
from meantime.integrations.mcp.id_scan import IdScan
from meantime.integrations.mcp.servers import StdioServer

GUARD = Path(__file__).parents[2] / "guard.py"
INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
MOST_BYTES = 32 << 20  # of one message
MOST_WAITING = 64 << 20  # bytes that it has not read yet
PIECE = 1 << 16
TAIL_LINES, TAIL_CHARACTERS = 20, 2_000  # of what it says on stderr
GOES = 6.0  # seconds in which a guard has ended its server, with a margin


class StdioWire:
    """The process, and both streams as the SDK wants them. `async with` it in one asyncio task."""

    def __init__(self, server: StdioServer) -> None:
        self._server = server
        self._process: asyncio.subprocess.Process
        self._lifeline = -1
        self._errors: asyncio.Task[None] | None = None
        self._said: deque[str] = deque(maxlen=TAIL_LINES)
        self.garbage = 0  # lines of its stdout that are no message
        self.first_garbage = ""

    async def __aenter__(self) -> tuple[Reading, Writing]:
        server = self._server
        kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
        theirs, self._lifeline = os.pipe()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", str(GUARD), str(theirs), *server.command),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=server.cwd,
                env={**kept, **server.env},
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except BaseException:
            os.close(self._lifeline)
            raise
        finally:
            os.close(theirs)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._errors = asyncio.get_running_loop().create_task(self._read_stderr(self._process.stderr))
        return Reading(self, self._process.stdout), Writing(self._process.stdin)

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._errors is not None
        self._process.stdin.close()
        os.close(self._lifeline)
        await guarded_process.let_go(self._process, self._errors, GOES)

    async def wait_ended(self, seconds: float) -> int | None:
        return await guarded_process.wait_ended(self._process, seconds)

    @property
    def stderr(self) -> str:
        """Its last lines."""
        return "\n".join(self._said)[-TAIL_CHARACTERS:]

    async def _read_stderr(self, stream: asyncio.StreamReader) -> None:
        rest = b""
        while piece := await stream.read(PIECE):
            *lines, rest = (rest + piece).split(b"\n")
            rest = rest[-TAIL_CHARACTERS:]
            for line in lines[-TAIL_LINES:]:
                self._on_stderr_line(line)
        self._on_stderr_line(rest)

    def _on_stderr_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()
        if text:
            self._said.append(text[-TAIL_CHARACTERS:])

    def count_garbage(self, line: bytes) -> None:
        self.garbage += 1
        self.first_garbage = self.first_garbage or line[:100].decode("utf-8", "replace")


class Reading:
    """Messages from the server. Lines that are not messages are counted; an answer that cannot be kept or
    read is the error of its request, so that nobody waits for it.
    """

    def __init__(self, wire: StdioWire, stream: asyncio.StreamReader) -> None:
        self._wire = wire
        self._stream = stream
        self._lines: deque[bytes] = deque()
        self._begun: list[bytes] = []  # the line that has no end yet
        self._size = 0
        self._scan: IdScan | None = None  # in place of the line itself, once it is too long

    async def receive(self) -> SessionMessage | Exception:
        while True:
            while self._lines:
                message = self._read(self._lines.popleft())
                if message is not None:
                    return message
            piece = await self._stream.read(PIECE)
            if not piece:
                raise StopAsyncIteration
            message = self._take(piece)
            if message is not None:
                return message

    def _take(self, piece: bytes) -> SessionMessage | None:
        first, *others = piece.split(b"\n")
        self._keep(first)
        if not others:
            return None
        ended = self._end_line()
        self._lines.extend(others[:-1])
        self._keep(others[-1])
        return ended

    def _keep(self, part: bytes) -> None:
        if self._scan is not None:
            self._scan.feed(part)
            return
        self._begun.append(part)
        self._size += len(part)
        if self._size > MOST_BYTES:
            self._scan = IdScan()
            for kept in self._begun:
                self._scan.feed(kept)
            self._begun = []

    def _end_line(self) -> SessionMessage | None:
        line, scan = b"".join(self._begun), self._scan
        self._begun, self._size, self._scan = [], 0, None
        if scan is None:
            return self._read(line)
        return self._refuse(scan, b"", f"The server's answer has more than {MOST_BYTES >> 20} MB.")

    def _read(self, line: bytes) -> SessionMessage | None:
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

    def __aiter__(self) -> Reading:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self.receive()

    async def aclose(self) -> None:
        pass

    async def __aenter__(self) -> Reading:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


class Writing:
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

    async def __aenter__(self) -> Writing:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
