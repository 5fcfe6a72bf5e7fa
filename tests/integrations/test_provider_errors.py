"""One table of provider errors, and every host judges them in the same way, each in the form that it gets.

A loop in Python is not among them: it says by TryAgain which of its errors pass.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError

from meantime.integrations.acp.profiles import BY_NAME
from meantime.integrations.acp.turn_result import AgentError, answered_with_error
from meantime.integrations.opencode.turn_result import verdict
from meantime.integrations.pydantic_ai.paced_model import trouble
from meantime.kernel.provider_errors import judge
from meantime.ports.commands import CommandEnd
from meantime.ports.session import Turned

from .cli_agents.test_dialects import turned
from .opencode.test_verdict import step

TABLE = tomllib.loads(Path(__file__).with_name("provider_errors.toml").read_text("utf-8"))["error"]


class Judged(NamedTuple):
    kind: str
    wait: float | None


def _judged(turn: object) -> Judged:
    assert isinstance(turn, Turned)
    assert turn.error is not None
    kind = "limited" if turn.rate_limited else "transient" if turn.retryable else "final"
    return Judged(kind, turn.retry_after)


def _kernel(text: str, status: int) -> Judged:
    found = judge(text, status)
    return Judged("limited" if found.limited else "transient" if found.passes else "final", found.after)


def _acp(text: str, status: int) -> Judged:
    return _judged(answered_with_error(BY_NAME["generic"], AgentError(status or -32603, text, None)))


def _claude(text: str, status: int) -> Judged:
    said = f"API Error: {status} {text}" if status else text
    event = {"type": "result", "subtype": "success", "is_error": True, "result": said}
    return _judged(turned("claude", event, ending=CommandEnd(1)))


def _codex(text: str, status: int) -> Judged:
    said = f"unexpected status {status}: {text}" if status else text
    event = {"type": "turn.failed", "error": {"message": said}}
    return _judged(turned("codex", event, ending=CommandEnd(1)))


def _stderr(text: str, status: int) -> Judged:
    return _judged(
        turned("goose", ending=CommandEnd(1), stderr=f"Error: {status} {text}" if status else text)
    )


def _opencode(text: str, status: int) -> Judged:
    data: dict[str, Any] = {"message": text, "isRetryable": status in (408, 409, 429) or status >= 500}
    if status:
        data["statusCode"] = status
    return _judged(verdict([step(error={"name": "APIError", "data": data})]))


def _opencode_body(text: str, status: int) -> Judged:
    """The message says nothing where there is a response: its body does."""
    response = {"message": "no", "responseBody": text, "statusCode": status}
    data = response if status else {"message": text}
    return _judged(verdict([step(error={"name": "APIError", "data": data})]))


def _pydantic_ai(text: str, status: int) -> Judged:
    body = {"message": text}
    found = trouble(ModelHTTPError(status, "m", body) if status else ModelAPIError("m", text))
    if found is None:
        return Judged("final", None)
    return Judged("limited" if found.limited else "transient", found.after)


HOSTS = (_kernel, _acp, _claude, _codex, _stderr, _opencode, _opencode_body, _pydantic_ai)


@pytest.mark.behaviour("L26")
@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.__name__.strip("_"))
@pytest.mark.parametrize("error", TABLE, ids=lambda error: f"{error.get('status', '')} {error['text']}"[:40])
def test_every_host_judges_an_error_of_a_provider_alike(
    error: dict[str, Any], host: Callable[[str, int], Judged]
):
    found = host(error["text"], error.get("status", 0))
    assert found == Judged(error["is"], error.get("wait"))
