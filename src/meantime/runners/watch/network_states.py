"""A port that opens, and an address that answers: each look has a time and a size that it may take."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from meantime.kernel.model import Json
from meantime.kernel.payloads import one_line

from .state_watch import Look, changed

LONGEST = 10.0  # seconds of one look
HEAD, BODY = 1 << 16, 1 << 20  # bytes of an answer that are read
MOST_VALUE = 2_000  # characters of a value that is kept


class PortState:
    every = 1.0
    reports = False

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host.removeprefix("[").removesuffix("]"), int(port)

    def listen(self, wake: asyncio.Event) -> None: ...

    async def look(self, was: Json) -> Look:
        try:
            async with asyncio.timeout(LONGEST):
                _, writer = await asyncio.open_connection(self._host, self._port)
        except (OSError, TimeoutError):
            state = "closed"
        else:
            writer.transport.abort()
            state = "open"
        return Look(state, changed(was, state), state)

    def close(self) -> None: ...


class UrlState:
    every = 10.0
    reports = False

    def __init__(self, url: str, value: str | None) -> None:
        self._url = urlsplit(url)
        self._value = value

    def listen(self, wake: asyncio.Event) -> None: ...

    async def look(self, was: Json) -> Look:
        try:
            async with asyncio.timeout(LONGEST):
                status, body = await self._get(with_body=self._value is not None)
        except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError, EOFError) as problem:
            why = "no end in time" if isinstance(problem, TimeoutError) else one_line(str(problem))
            return Look("no answer", changed(was, "no answer", why), "no answer")
        state = status if self._value is None else _value_at(body, self._value)
        return Look(state, changed(was, state), state)

    async def _get(self, *, with_body: bool) -> tuple[str, bytes]:
        """A request by itself: nothing is read beyond the limits, whatever the server sends."""
        url, is_tls = self._url, self._url.scheme == "https"
        host = url.hostname or ""
        tls = ssl.create_default_context() if is_tls else None
        port = url.port or (443 if is_tls else 80)
        reader, writer = await asyncio.open_connection(host, port, ssl=tls, limit=HEAD)
        try:
            target = (url.path or "/") + (f"?{url.query}" if url.query else "")
            host = f"[{host}]" if ":" in host else host
            asked = f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: application/json, */*\r\n"
            writer.write(f"{asked}User-Agent: meantime\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
            try:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            except asyncio.LimitOverrunError:
                raise ValueError("its head is too long") from None
            first, *lines = head.split("\r\n")
            words = first.split(" ", 2)
            if len(words) < 2 or not words[0].startswith("HTTP/") or not words[1].isdigit():
                raise ValueError("it does not speak HTTP")
            fields = {
                name.strip().lower(): text.strip() for name, _, text in (x.partition(":") for x in lines)
            }
            return words[1], await _body(reader, fields) if with_body else b""
        finally:
            writer.transport.abort()

    def close(self) -> None: ...


async def _body(reader: asyncio.StreamReader, fields: dict[str, str]) -> bytes:
    """At most BODY bytes; more is not read, and is not JSON any more."""
    if fields.get("transfer-encoding", "").lower() == "chunked":
        parts: list[bytes] = []
        left = BODY
        while size := int((await reader.readline()).split(b";")[0], 16):
            if size > left:
                raise ValueError(f"its answer is longer than {BODY:,} bytes")
            parts.append(await reader.readexactly(size))
            await reader.readline()
            left -= size
        return b"".join(parts)
    length = fields.get("content-length", "")
    wanted = min(int(length), BODY + 1) if length.isdigit() else BODY + 1
    data = b""
    while len(data) < wanted and (piece := await reader.read(wanted - len(data))):
        data += piece
    if len(data) > BODY:
        raise ValueError(f"its answer is longer than {BODY:,} bytes")
    return data


def _value_at(body: bytes, path: str) -> str:
    """The value at a path of names and numbers with dots between: "jobs.0.state"."""
    try:
        found: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "no JSON"
    for name in path.split(".") if path else ():
        if isinstance(found, list) and name.isdecimal() and len(name) < 10:
            found = next(iter(cast("list[Any]", found)[int(name) : int(name) + 1]), None)
        elif isinstance(found, dict):
            found = cast("dict[str, Any]", found).get(name)
        else:
            found = None
    with contextlib.suppress(msgspec.MsgspecError, RecursionError):
        return (found if isinstance(found, str) else msgspec.json.encode(found).decode())[:MOST_VALUE]
    return "no JSON"
