"""A client that sends exactly what it is told to, as any program could."""

from __future__ import annotations

import http.client

import anyio.to_thread
from tests.waiting import LIMIT

from meantime import HttpDoor

Headers = dict[str, str]


class Answer:
    def __init__(self, status: int, headers: Headers, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


def ask(door: HttpDoor, path: str, headers: Headers | None = None, method: str = "GET") -> Answer:
    """As any program would, with nothing added to what is sent. Of a stream, the beginning."""
    connection = http.client.HTTPConnection("127.0.0.1", door.port, timeout=LIMIT)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {"Host": f"127.0.0.1:{door.port}", **(headers or {})}.items():
            if value:
                connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        streams = found.get("content-type", "").startswith("text/event-stream")
        return Answer(answer.status, found, b"" if streams else answer.read())
    finally:
        connection.close()


async def asking(*args: object, **more: object) -> Answer:
    return await anyio.to_thread.run_sync(lambda: ask(*args, **more))  # type: ignore[arg-type]
