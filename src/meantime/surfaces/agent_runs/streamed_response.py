"""An answer whose parts come until a run ends."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from meantime.surfaces.http.client_limits import connection_of
from meantime.surfaces.http.long_polls import Poll, Polls

_END = b""


class StreamedResponse(Response):
    """A server that closes aborts the answer: a clean end would say that there is no more. `left` is called
    if the client goes before the end."""

    def __init__(
        self,
        parts: AsyncGenerator[bytes],
        polls: Polls,
        headers: Mapping[str, str],
        left: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        super().__init__(headers=dict(headers))
        self._parts = parts
        self._polls = polls
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del self.headers["content-length"]
        async with self._polls.waiting(receive) as poll:
            start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            await send(start)
            if await self._sent(poll, send):
                return
            connection = connection_of(scope)
            if poll.gone.done():
                if self._left is not None:
                    await self._left()
            elif connection is not None:
                connection.abort()
                await poll.gone

    async def _sent(self, poll: Poll, send: Send) -> bool:
        async with aclosing(self._parts):
            while (part := await poll.first(anext(self._parts, _END))) is not None:
                await send({"type": "http.response.body", "body": part, "more_body": bool(part)})
                if not part:
                    return True
        return False
