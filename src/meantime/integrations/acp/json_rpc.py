"""The wire to an agent: JSON-RPC on its stdin and stdout. The only place that knows the SDK.

We use the SDK's connection and not its typed client: that drops updates of kinds it does not know, and loses
a whole turn to one malformed field of its answer.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

import msgspec
from acp.connection import Connection
from acp.exceptions import RequestError
from acp.meta import PROTOCOL_VERSION

from meantime.integrations.agent_host.json_values import mapping
from meantime.system.line_splitter import LineSplitter, LineTooLong, StreamLines

from .turn_result import AgentError

VERSION = PROTOCOL_VERSION
MOST_BYTES = 64 << 20  # of one message
UPDATE, PERMISSION = "session/update", "session/request_permission"
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class JsonRpcListener(Protocol):
    def on_update(self, params: dict[str, Any]) -> None:
        """session/update. Quick, and never raises."""
        ...

    async def on_request(self, params: dict[str, Any]) -> dict[str, Any]:
        """session/request_permission: its outcome."""
        ...


class JsonRpcConnection:
    def __init__(
        self, listener: JsonRpcListener, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader
    ) -> None:
        self._listener = listener
        self._lines = MessageStream(stdin, stdout)
        self._connection = Connection(self._handle, self._lines)

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Raises AgentError, and ConnectionError when the agent is gone."""
        try:
            answer = await self._connection.send_request(method, params)
        except RequestError as problem:
            raise AgentError(problem.code, str(problem), problem.data) from None
        return mapping(answer)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        await self._connection.send_notification(method, params)

    async def close(self) -> None:
        self._lines.closed = True
        await self._connection.close()

    @property
    def garbage(self) -> str:
        """The first line of its stdout that is not a message."""
        return self._lines.garbage

    async def _handle(self, method: str, params: Any, is_notification: bool) -> Any:
        if method == UPDATE:
            self._listener.on_update(mapping(params))
            return None
        if method == PERMISSION:
            return await self._listener.on_request(mapping(params))
        if is_notification:
            return None  # extensions of agents, which nobody needs to know
        raise RequestError.method_not_found(method)


class MessageStream:
    """Messages as the SDK's connection moves them. Other lines are left out: agents print."""

    def __init__(self, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader) -> None:
        self._stdin = stdin
        self._splitter = LineSplitter(MOST_BYTES)
        self._lines = StreamLines(stdout, self._splitter, with_rest=False)
        self.garbage = ""
        self.closed = False

    async def send(self, message: dict[str, Any]) -> None:
        try:
            self._stdin.write(_encode(message) + b"\n")  # whole, also if we are cancelled in the next line
            await self._stdin.drain()
        except (ConnectionError, RuntimeError):
            if "method" in message:  # an answer that nobody waits for any more is no trouble
                raise ConnectionError("The agent's stdin is closed.") from None

    async def receive(self) -> dict[str, Any] | None:
        while not self.closed:
            try:
                line = await anext(self._lines)
            except StopAsyncIteration:
                self._keep(self._splitter.begun)
                return None
            except LineTooLong:
                self._keep(b"a message over the limit")  # whose answer it was is not known: nobody may wait
                return None
            except OSError:
                return None
            message = self._read(line)
            if message is not None:
                return message
        return None

    def _read(self, line: bytes) -> dict[str, Any] | None:
        try:
            message = mapping(_decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            message = {}
        if "method" in message or "id" in message:
            return message
        self._keep(line)
        return None

    def _keep(self, line: bytes) -> None:
        self.garbage = self.garbage or line[:200].decode("utf-8", "replace").strip()

    async def close(self) -> None:
        self.closed = True
        self._stdin.close()
