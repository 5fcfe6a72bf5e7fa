"""The failures of a server. Apart, so that naming them does not load the SDK."""

from __future__ import annotations

from typing import Any


class Trouble(Exception):
    """str() says what happened, in words for people."""


class NotStarted(Trouble):
    """The server could not be reached, or did not speak with us."""


class Gone(Trouble):
    """The connection ended before the answer came."""


class Unanswered(Trouble):
    """The answer to this one request will not come; the connection is well."""


class Stale(Trouble):
    """The server has forgotten our session: nothing was done, and a new connection is needed."""


class Refusal(Trouble):
    """The server answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.error = {"code": code, "message": message, "data": data}
