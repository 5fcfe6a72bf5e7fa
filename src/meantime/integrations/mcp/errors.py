"""The failures of a server. Apart, so that naming them does not load the SDK."""

from __future__ import annotations

from typing import Any


class ServerError(Exception):
    """str() says what happened, in words for people."""


class NotStarted(ServerError):
    """The server could not be reached, or did not speak with us."""


class ServerGone(ServerError):
    """The connection ended before the answer came."""


class Unanswered(ServerError):
    """The answer to this one request will not come; the connection is well."""


class Stale(ServerError):
    """The server has forgotten our session: nothing was done, and a new connection is needed."""


class ServerRefused(ServerError):
    """The server answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.error = {"code": code, "message": message, "data": data}
