"""A client of the event stream, on a bare socket: it reads when it is told to, and not before."""

from __future__ import annotations

import asyncio
import json
from types import TracebackType
from typing import Any, NamedTuple

from tests.waiting import LIMIT

from meantime import HttpDoor


class Said(NamedTuple):
    event: str
    data: Any
    id: str | None = None


class Listener:
    def __init__(self, door: HttpDoor, path: str = "/v1/events", **headers: str) -> None:
        self._door = door
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{door.port}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._request = "\r\n".join([*lines, "", ""]).encode()
        self._text = ""
        self.status = 0
        self.headers: dict[str, str] = {}

    async def __aenter__(self) -> Listener:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._door.port, limit=1 << 24)
        self.writer.write(self._request)
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), LIMIT)
        first, *rest = head.decode().strip().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in rest)}
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.writer.transport.abort()

    async def hear(self) -> Said:
        """The next event, or None at the end of the stream."""
        while "\n\n" not in self._text:
            self._text += (await asyncio.wait_for(self._chunk(), LIMIT)).decode()
        block, _, self._text = self._text.partition("\n\n")
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        return Said(fields["event"], json.loads(fields["data"]), fields.get("id"))

    async def _chunk(self) -> bytes:
        size = int(await self.reader.readline(), 16)
        data = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        if not size:
            raise EOFError("the stream has ended")
        return data
