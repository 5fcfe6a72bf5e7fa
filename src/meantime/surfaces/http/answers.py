"""Every answer of the door is made here: JSON, errors that say what to do, and seed 001's CORS headers."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from meantime.kernel.errors import (
    Ambiguous,
    Closed,
    Degraded,
    Duplicate,
    InvalidInput,
    LeaseLost,
    LimitReached,
    MeantimeError,
    NotFound,
    Refused,
    StillRunning,
    TaskEnded,
)

encode = msgspec.json.Encoder().encode
# Byte for byte as seed 001 has them. They are no permission: the gate gives that (docs/http.md).
CORS: tuple[tuple[bytes, bytes], ...] = (
    (b"access-control-allow-origin", b"*"),
    (b"access-control-allow-methods", b"GET, OPTIONS"),
    (b"access-control-allow-headers", b"Content-Type"),
)
SAFE: tuple[tuple[bytes, bytes], ...] = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),  # a capability path must not leave with a link
)
_STATUSES: tuple[tuple[type[MeantimeError], int], ...] = (
    (InvalidInput, 400),
    (NotFound, 404),
    (Ambiguous, 409),
    (LimitReached, 429),
    (Degraded, 507),
    (Refused, 409),
    (LeaseLost, 409),
    (StillRunning, 409),
    (TaskEnded, 409),
    (Closed, 503),
)


class Refusal(MeantimeError):
    """The door's own no: an HTTP status with a reason."""

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status = status
        self.headers = headers


def json(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(value), status, headers, "application/json")


def problem(error: MeantimeError, **more: Any) -> Response:
    """The error as JSON. `error` is for people, `code` is stable, `hint` says what to do."""
    body = {"error": error.message, "code": error.code, "hint": error.hint, **_particulars(error), **more}
    return json(body, status_of(error), _headers(error))


def _particulars(error: MeantimeError) -> dict[str, Any]:
    match error:
        case Ambiguous():
            return {"candidates": error.candidates}
        case Duplicate():
            return {"existing": error.existing}
        case LimitReached():
            return {"running": error.running, "limit": error.limit}
        case LeaseLost():
            return {"notices": error.notices}
        case _:
            return {}


def status_of(error: MeantimeError) -> int:
    if isinstance(error, Refusal):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def _headers(error: MeantimeError) -> dict[str, str] | None:
    if isinstance(error, Refusal) and error.headers:
        return error.headers
    match status_of(error):
        case 401:
            return {"WWW-Authenticate": "Bearer"}
        case 429 | 503:
            return {"Retry-After": "5"}
        case _:
            return None
