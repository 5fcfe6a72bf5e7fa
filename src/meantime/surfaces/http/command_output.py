"""The output of a command: a stretch of it by offset, its last lines, or all of it as it comes."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator

from msgspec import UNSET
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from meantime.conversation.log import Log
from meantime.kernel.errors import InvalidInput
from meantime.kernel.model import Chunk

from .client_limits import connection_of
from .dependencies import Dependencies
from .long_polls import Polls
from .message_history import half_character
from .responses import encode
from .routing import RequestContext
from .task_lookup import find
from .task_requests import PIECE, OutputRange
from .task_schemas import Output

TYPES = {"text": b"text/plain; charset=utf-8", "base64": b"application/octet-stream"}
CHUNKS = b"application/jsonl"
_END = Chunk(b"", 0, 0, 0)


async def get_output(deps: Dependencies, asked: RequestContext[OutputRange, None]) -> Output | Response:
    given, framed = asked.params, asked.params.format == "chunks"
    task = await find(deps.tasks, asked.subject, asked.thread)
    log = Log(deps.tasks, task.id, None)
    if given.follow:
        offset = given.offset
        first = await log.read(offset, stream=given.stream, limit=1)  # a refusal is an answer of its own
        if not framed:
            offset = max(offset, first.offset)
        kind = CHUNKS if framed else TYPES[given.encoding]
        return OutputStream(log.follow(offset, stream=given.stream, limit=PIECE), deps.polls, kind)
    if framed:
        raise InvalidInput("format=chunks is for follow=1.", hint="Add follow=1, or leave format out.")
    if given.tail is None:
        chunk = await log.read(given.offset, stream=given.stream, limit=given.limit)
    elif given.offset:
        raise InvalidInput("offset and tail exclude each other.", hint="Choose one.")
    else:
        chunk = await log.tail(given.tail, stream=given.stream, limit=given.limit)
    return _wire(chunk, given.encoding)


def _wire(chunk: Chunk, encoding: str) -> Output:
    """Text never ends within a character: `next` is where that one begins."""
    is_text = encoding == "text"
    cut = half_character(chunk.data) if is_text and chunk.next < chunk.total else 0
    data = chunk.data[: len(chunk.data) - cut]
    return Output(
        data=data.decode("utf-8", "replace") if is_text else UNSET,
        data_base64=UNSET if is_text else base64.b64encode(data).decode(),
        offset=chunk.offset,
        next=chunk.next - cut,
        total=chunk.total,
        lost_bytes=chunk.lost_bytes,
        ended=chunk.ended,
    )


class OutputStream(Response):
    """The output as it comes, until the task has ended: its bytes, or one JSON object a line, which also says
    where bytes were lost. A server that closes aborts the response: a clean end would say that there is no
    more.
    """

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
    return encode(_wire(chunk, "base64")) + b"\n"
