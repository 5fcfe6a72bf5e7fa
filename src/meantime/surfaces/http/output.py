"""What a command says: a stretch of it by offset, its last lines, or all of it as it comes."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Chunk
from meantime.log import Log, Stream

from . import answers, asking
from .endpoint import Table
from .guard import connection_of
from .logs import PIECE, STREAMS, half_character
from .parts import Parts
from .polls import Polls

DEFAULT = 65_536  # bytes
MOST_LINES = 100_000
MOST_OFFSET = 1 << 53  # as far as every reader of JSON can count
TYPES = {"text": b"text/plain; charset=utf-8", "base64": b"application/octet-stream"}
CHUNKS = b"application/jsonl"
_END = Chunk(b"", 0, 0, 0)


class Outputs:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def table(self) -> Table:
        return {"GET /v1/tasks/{id}/output": self.output}

    async def output(self, request: Request) -> Response:
        given = request.query_params
        task = await self._parts.task(request)
        log = Log(self._parts.tasks, task.id, None)
        stream: Stream = asking.choice(given, "stream", STREAMS)
        encoding = asking.choice(given, "encoding", ("text", "base64"))
        offset = asking.number(given, "offset", 0, most=MOST_OFFSET)
        framed = asking.choice(given, "format", ("raw", "chunks")) == "chunks"
        if asking.flag(given, "follow"):
            first = await log.read(offset, stream=stream, limit=1)  # what is refused is an answer of its own
            if not framed:
                offset = max(offset, first.offset)
            kind = CHUNKS if framed else TYPES[encoding]
            return Following(log.follow(offset, stream=stream, limit=PIECE), self._parts.polls, kind)
        if framed:
            raise InvalidInput("format=chunks is for follow=1.", hint="Add follow=1, or leave format out.")
        limit = asking.number(given, "limit", DEFAULT, least=1, most=PIECE)
        if "tail" not in given:
            return answers.json(_wire(await log.read(offset, stream=stream, limit=limit), encoding))
        if offset:
            raise InvalidInput("offset and tail exclude each other.", hint="Choose one.")
        lines = asking.number(given, "tail", 50, least=1, most=MOST_LINES)
        return answers.json(_wire(await log.tail(lines, stream=stream, limit=limit), encoding))


def _wire(chunk: Chunk, encoding: str) -> dict[str, Any]:
    """Text never ends within a character: `next` is where that one begins."""
    cut = half_character(chunk.data) if encoding == "text" and chunk.next < chunk.total else 0
    data = chunk.data[: len(chunk.data) - cut]
    said = (
        {"data": data.decode("utf-8", "replace")}
        if encoding == "text"
        else {"dataBase64": base64.b64encode(data).decode()}
    )
    return {
        **said,
        "offset": chunk.offset,
        "next": chunk.next - cut,
        "total": chunk.total,
        "lostBytes": chunk.lost_bytes,
        "ended": chunk.ended,
    }


class Following(Response):
    """What comes, until the task has ended: its bytes, or one JSON object a line, which also says where
    bytes were lost. A door that closes breaks the answer off: an end in good order would say that there
    is no more."""

    def __init__(self, chunks: AsyncIterator[Chunk], polls: Polls, kind: bytes) -> None:
        super().__init__()
        self._chunks = chunks
        self._polls = polls
        self._kind = kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._polls.waiting(receive) as poll:
            headers = [(b"content-type", self._kind), (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            if scope["method"] == "HEAD":
                await send({"type": "http.response.body", "body": b""})
                return
            while (chunk := await poll.first(anext(self._chunks, _END))) is not None:
                if chunk is _END:
                    await send({"type": "http.response.body", "body": b""})
                    return
                body = _line(chunk) if self._kind is CHUNKS else chunk.data
                await send({"type": "http.response.body", "body": body, "more_body": True})
            connection = connection_of(scope)
            if connection is not None and not poll.gone.done():
                connection.abort()
                await poll.gone


def _line(chunk: Chunk) -> bytes:
    return json.dumps(_wire(chunk, "base64")).encode() + b"\n"
