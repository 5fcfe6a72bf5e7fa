"""The body of a request: bounded while it comes, JSON, and exactly the fields that are known."""

from __future__ import annotations

from typing import Any, TypeVar, cast

import msgspec
from starlette.requests import Request

from meantime.kernel.decode_errors import Mismatch, mismatch_raises
from meantime.kernel.errors import InvalidInput
from meantime.ports.clock import Clock

from .client_limits import connection_of
from .http_settings import HttpSettings
from .responses import Refusal
from .schemas import Body

DEPTH = 64
T = TypeVar("T", bound=Body)
_SEE = "See /v1/openapi.json."


async def body_of(request: Request, kind: type[T], settings: HttpSettings, clock: Clock) -> T:
    """An empty body is an empty object."""
    return parsed(await read(request, settings, clock) or b"{}", kind)


async def read(request: Request, settings: HttpSettings, clock: Clock) -> bytes:
    """A length that was announced is checked at the gate; what comes in pieces is counted here."""
    connection = connection_of(request.scope)
    alarm = clock.call_later(settings.body_seconds, connection.abort) if connection else None
    found = bytearray()
    try:
        async for piece in request.stream():
            found += piece
            if len(found) > settings.body_bytes:
                raise Refusal(413, "body_too_big", f"A body has at most {settings.body_bytes} bytes.")
    finally:
        if alarm is not None:
            alarm.cancel()
    return bytes(found)


def parsed(data: bytes, kind: type[T]) -> T:
    try:
        value = msgspec.json.decode(data)
    except RecursionError:
        raise _too_deep() from None
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise InvalidInput(f"The body is not JSON: {problem}.", hint=_SEE, code="invalid_json") from None
    if not isinstance(value, dict):
        raise InvalidInput("The body is not a JSON object.", hint=_SEE)
    _check_depth(cast("dict[str, Any]", value))

    def error(mismatch: Mismatch) -> InvalidInput:
        from .validation import body_error  # only where it is needed: reading types takes a while

        return body_error(mismatch, kind)

    with mismatch_raises(error):
        return msgspec.convert(value, kind)


def _check_depth(value: dict[str, Any]) -> None:
    """Level by level, so that no depth can be too deep for us."""
    level: list[Any] = [value]
    for _ in range(DEPTH):
        below: list[Any] = []
        for one in level:
            below += cast("dict[str, Any]", one).values() if isinstance(one, dict) else one
        level = [one for one in below if isinstance(one, dict | list)]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> InvalidInput:
    return InvalidInput(f"The body is nested deeper than {DEPTH} levels.", code="too_deep")
