"""Responses: JSON, errors that say what to do, and seed 001's CORS headers."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from starlette.responses import Response

from meantime.kernel.durations import iso
from meantime.kernel.errors import (
    AlreadyAnswered,
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

from .task_schemas import Error, WireTask

encode = msgspec.json.Encoder().encode
# Byte for byte as seed 001 has them. They are no permission: the gate gives that (docs/reference/http.md).
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
    """The server's own refusal: an HTTP status with a reason."""

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.status = status
        self.headers = headers


class CountChanged(Refusal):
    """Another number of tasks matches than the caller has agreed to."""

    def __init__(self, expected: int, count: int) -> None:
        text = f"{count} tasks match now, not {expected}."
        super().__init__(409, "count_changed", text, "Look again, and send the new number as `expect`.")
        self.count = count


def json_response(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(value), status, headers, "application/json")


def error_response(error: MeantimeError, *, task: WireTask | UnsetType = UNSET) -> Response:
    """`error` is for people, `code` is stable, `hint` says what to do."""
    return Response(error_body(error, task=task), status_of(error), _headers(error), "application/json")


def error_body(error: MeantimeError, *, task: WireTask | UnsetType = UNSET) -> bytes:
    body = Error(
        error=error.message,
        code=error.code,
        hint=error.hint,
        candidates=tuple(error.candidates) if isinstance(error, Ambiguous) else UNSET,
        existing=error.existing if isinstance(error, Duplicate) else UNSET,
        running=error.running if isinstance(error, LimitReached) else UNSET,
        limit=error.limit if isinstance(error, LimitReached) else UNSET,
        notices=tuple(error.notices) if isinstance(error, LeaseLost) else UNSET,
        task=task,
        by=error.by if isinstance(error, AlreadyAnswered) else UNSET,
        at=iso(error.at) if isinstance(error, AlreadyAnswered) else UNSET,
        answer=error.answer if isinstance(error, AlreadyAnswered) else UNSET,
        count=error.count if isinstance(error, CountChanged) else UNSET,
    )
    return encode(body)


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
