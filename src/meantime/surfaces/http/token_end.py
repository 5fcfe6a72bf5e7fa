"""The end of a token during a request: a stream ends with an event that says why, a wait with 401."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .client_limits import connection_of
from .event_encoding import frame
from .issued_tokens import Ended
from .responses import Refusal, error_body, error_response

_TEXTS = {"token_revoked": "This token was revoked.", "token_expired": "This token has expired."}
_HINT = "Get a new link with `meantime open`, or a new token with `meantime token create`."


def ended_token(why: str) -> Refusal:
    return Refusal(401, why, _TEXTS[why], _HINT)


async def until_ended(
    app: ASGIApp, scope: Scope, receive: Receive, send: Send, ended: asyncio.Future[Ended]
) -> None:
    """Answers, unless the token ends before the answer does."""
    kind: list[bytes] = []  # the content type, once the answer has begun

    async def noting(message: Message) -> None:
        if message["type"] == "http.response.start":
            kind.append(dict(message["headers"]).get(b"content-type", b""))
        await send(message)

    serving = asyncio.ensure_future(app(scope, receive, noting))
    try:
        await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not serving.done():
            serving.cancel()
            await asyncio.wait({serving})
    if not serving.cancelled():
        serving.result()
        return
    no = ended_token(ended.result())
    if not kind:
        await error_response(no)(scope, receive, send)
    elif kind[0].startswith(b"text/event-stream") and scope["path"].startswith("/v1/"):
        last = frame("unauthorized", error_body(no))
        await send({"type": "http.response.body", "body": last})
    elif (connection := connection_of(scope)) is not None:
        connection.abort()  # a clean end would say that this was all
