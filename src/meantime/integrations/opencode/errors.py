"""The failures between an OpenCode server and us."""

from __future__ import annotations

import importlib.util

from meantime.kernel.errors import InvalidInput, Refused


class Away(Exception):
    """The server does not answer, or was lost in mid-call: what it made of the call is not known."""


class Unknown(Exception):
    """It has no such session, message or question."""


class NotStarted(Refused):
    """Our own server could not be started."""

    code = "server_not_started"


class Denied(Refused):
    """It answered, and the answer is no."""

    code = "server_refused"


def check_extra() -> None:
    if importlib.util.find_spec("httpx") is None:
        raise InvalidInput(
            "OpenCode is driven over HTTP, which needs httpx.",
            code="extra_missing",
            hint="Install it: pip install 'meantime[opencode]'.",
        )
