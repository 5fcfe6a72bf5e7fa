"""How a turn ended, by what the server has stored. Its events are hints only: `session.idle` comes before
the last message is written, or twice, or for a session that has said nothing."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from meantime.integrations.agent_host.host_errors import failed
from meantime.kernel.model import Failed
from meantime.kernel.provider_errors import judge
from meantime.ports.session import Turned

from .message_lines import text_of

GOING_ON = frozenset({"tool-calls", "unknown"})  # ways for a step to end that are not the end of a turn
STACK = "\n    at "  # how a trace through OpenCode itself begins, which helps nobody


class Undecided(Enum):
    """Why there is no verdict, though the session does not work."""

    UNBEGUN = "unbegun"  # the prompt is there, and the model was not asked with it
    BROKEN_OFF = "broken off"  # a step, or what should follow it, is missing


def verdict(
    steps: Sequence[dict[str, Any]], *, stopping: bool = False, problem: dict[str, Any] | None = None
) -> Turned | Undecided:
    """The verdict on an idle session, from the model's work since the prompt; `problem` is what the session
    itself complained of. `stopping`: we have asked it to stop.
    """
    if not steps:
        return _failed(problem) if problem else Undecided.UNBEGUN
    last = steps[-1]["info"]
    if error := last.get("error"):
        return _failed(error)
    if not last["time"].get("completed"):
        return Turned(stopped=True) if stopping else Undecided.BROKEN_OFF
    finish = last.get("finish")
    if finish and finish not in GOING_ON:
        return Turned(text=_last_text(steps))
    if stopping:
        return Turned(stopped=True)  # stopped while it waited for its provider, it says neither
    refused = _refused(steps[-1])
    if refused:
        return Turned(error=Failed(f"The agent stopped when it was refused: {refused}", "refused"))
    if not finish:
        return Turned(error=Failed("The agent was stopped by somebody else.", "interrupted"))
    return Undecided.BROKEN_OFF


def _last_text(steps: Sequence[dict[str, Any]]) -> str:
    """A last step may say nothing, after one that said it all."""
    return next((text for step in reversed(steps) if (text := text_of(step))), "")


def _failed(error: dict[str, Any]) -> Turned:
    if error.get("name") == "MessageAbortedError":
        return Turned(stopped=True)
    data: dict[str, Any] = error.get("data") or {}
    message = str(data.get("message") or error.get("message") or error.get("name") or "It says no more.")
    message = message.partition(STACK)[0]
    status = data.get("statusCode")
    advice = judge(
        f"{message} {data.get('responseBody') or ''}",
        status if isinstance(status, int) else 0,
        after=_seconds(data.get("responseHeaders")),
        advised=bool(data.get("isRetryable")),
    )
    code = {"ContextOverflowError": "context_full", "ProviderAuthError": "not_authorised"}
    return failed(Failed(message, code.get(str(error.get("name")), "model_error")), advice)


def _seconds(headers: Any) -> float | None:
    try:
        return float(headers["retry-after"])
    except (KeyError, TypeError, ValueError):
        return None


def _refused(step: dict[str, Any]) -> str:
    for part in step["parts"]:
        if part["type"] == "tool" and part["state"]["status"] == "error":
            return str(part["state"].get("error") or part["tool"])
    return ""
