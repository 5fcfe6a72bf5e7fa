"""An MCP server over HTTP, written by hand on raw sockets, so that it can misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

Reply = Callable[[dict[str, Any], asyncio.StreamWriter], Coroutine[Any, Any, None]]


class HttpPeer:
    """Answers by the name of the tool. `calls` is what was executed; `how` changes all answers."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.how = ""
        self.gate = asyncio.Event()
        self.session = "one"
        self._server: asyncio.Server

    async def __aenter__(self) -> HttpPeer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gate.set()
        self._server.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode().strip().split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                await self._answer(first.split()[0], headers, body, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(
        self, verb: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter
    ) -> None:
        self.headers.append(headers)
        if verb != "POST":
            return status(writer, 405 if verb == "GET" else 200)
        if self.how:
            return status(writer, int(self.how), b"not today")
        message = json.loads(body)
        method, id = message.get("method"), message.get("id")
        if id is None:
            return status(writer, 202)
        known = headers.get("mcp-session-id")
        if known is not None and known != self.session:
            return status(writer, 404, b"no such session")
        if method == "initialize":
            info = {"name": "peer", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            return answer(writer, id, result, session=self.session)
        if method == "tools/list":
            names = (
                "echo",
                "sse",
                "refused",
                "broken",
                "reset",
                "half",
                "cut",
                "stall",
                "silent",
                "html",
                "huge",
            )
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
            return answer(writer, id, {"tools": tools})
        if method == "tools/call":
            self.calls.append(message["params"]["name"])
            return await getattr(self, f"do_{message['params']['name']}")(message, writer)
        error = {"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}}
        return reply(writer, 200, "application/json", json.dumps(error).encode())

    async def do_echo(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        answer(writer, message["id"], said(message["params"]["arguments"].get("text", "")))

    async def do_sse(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Progress first, on the stream of the call."""
        token = message["params"]["_meta"]["progressToken"]
        begin_stream(writer)
        params = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
        event(writer, {"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        await writer.drain()
        await self.gate.wait()
        event(writer, {"jsonrpc": "2.0", "id": message["id"], "result": said("streamed")})
        writer.close()

    async def do_refused(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        status(writer, 401, b"who are you?")

    async def do_broken(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        status(writer, 500, b"oops")

    async def do_reset(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def do_half(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """Half a JSON body, then the end."""
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{")
        await writer.drain()
        writer.close()

    async def do_cut(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        """A stream that ends in the middle."""
        begin_stream(writer)
        writer.write(b": still there\n\n")
        await writer.drain()
        writer.close()

    async def do_stall(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        begin_stream(writer)
        await writer.drain()
        await self.gate.wait()

    async def do_silent(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        await self.gate.wait()

    async def do_html(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        reply(writer, 200, "text/html", b"<h1>Welcome</h1>")

    async def do_huge(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        answer(writer, message["id"], said("x" * 40_000_000))


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def status(writer: asyncio.StreamWriter, code: int, body: bytes = b"") -> None:
    reply(writer, code, "text/plain", body)


def answer(writer: asyncio.StreamWriter, id: Any, result: dict[str, Any], session: str = "") -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
    reply(writer, 200, "application/json", body, session)


def reply(writer: asyncio.StreamWriter, code: int, kind: str, body: bytes, session: str = "") -> None:
    extra = f"mcp-session-id: {session}\r\n" if session else ""
    head = f"HTTP/1.1 {code} Said\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{extra}\r\n"
    writer.write(head.encode() + body)


def begin_stream(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")


def event(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    writer.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
